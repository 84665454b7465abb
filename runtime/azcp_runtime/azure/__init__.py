"""The door to Azure Blob Storage: the only package that imports the Azure SDK."""
