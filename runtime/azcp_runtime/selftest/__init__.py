"""What an injected image proves about itself, inside it and without anything of the base."""
