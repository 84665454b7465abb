"""What goes below /opt/azcp, brought here by digest and laid out on this machine."""
