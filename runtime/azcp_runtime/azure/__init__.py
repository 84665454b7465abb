"""The door to Azure Blob Storage: the only package that imports the Azure SDK."""

import logging

# The SDK warns of each failed try on standard error; what matters is raised.
logging.getLogger("azure").addHandler(logging.NullHandler())
