#!/bin/sh
# Lets the pods of the job simulate read the container meshes of the account examplemodels, and nothing else.
# Read it, then run it as somebody who may assign roles; it can be run again.
set -eu

group=simulation-rg
cluster=simulation-aks
account=examplemodels
container=meshes

account_id=$(az storage account list --query "[?name=='$account'].id | [0]" --output tsv)
if [ -z "$account_id" ]; then
    echo "the storage account $account is not in this subscription: az account set --subscription NAME" >&2
    exit 1
fi

# The nodes' own identity: every pod on them can read the container then.
client_id=11111111-2222-3333-4444-555555555555
identity=$(az aks show --resource-group "$group" --name "$cluster" --query identityProfile.kubeletidentity.clientId --output tsv)
if [ "$identity" != "$client_id" ]; then
    echo "the kubelet of $cluster has the client id $identity, job.toml says $client_id" >&2
    exit 1
fi
principal=$(az aks show --resource-group "$group" --name "$cluster" --query identityProfile.kubeletidentity.objectId --output tsv)

az role assignment create --role "Storage Blob Data Reader" \
    --assignee-object-id "$principal" --assignee-principal-type ServicePrincipal \
    --scope "$account_id/blobServices/default/containers/$container"
