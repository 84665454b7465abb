"""One quoting function per kind of text that leaves the toolkit, each a filter of the templates."""
