#!/bin/sh
# Lets the pods of the job llama read the container models of the account examplemodels, and nothing else.
# Read it, then run it as somebody who may assign roles; it can be run again.
set -eu

group=training-rg
cluster=training-aks
account=examplemodels
container=models

account_id=$(az storage account list --query "[?name=='$account'].id | [0]" --output tsv)
if [ -z "$account_id" ]; then
    echo "the storage account $account is not in this subscription: az account set --subscription NAME" >&2
    exit 1
fi

name=llama-identity
namespace=training
service_account=llama

if ! az identity show --resource-group "$group" --name "$name" --output none 2>/dev/null; then
    az identity create --resource-group "$group" --name "$name" --output none
fi
client_id=$(az identity show --resource-group "$group" --name "$name" --query clientId --output tsv)
principal=$(az identity show --resource-group "$group" --name "$name" --query principalId --output tsv)
if [ "$client_id" != 11111111-2222-3333-4444-555555555555 ]; then
    echo "the identity $name has the client id $client_id, job.toml says 11111111-2222-3333-4444-555555555555" >&2
    exit 1
fi

# The cluster's issuer vouches for this one service account.
issuer=$(az aks show --resource-group "$group" --name "$cluster" --query oidcIssuerProfile.issuerUrl --output tsv)
if [ -z "$issuer" ]; then
    echo "turn it on first: az aks update --enable-oidc-issuer --enable-workload-identity" >&2
    exit 1
fi
az identity federated-credential create --resource-group "$group" --identity-name "$name" \
    --name training-aks-training-llama --issuer "$issuer" \
    --subject "system:serviceaccount:$namespace:$service_account" --audiences api://AzureADTokenExchange

az role assignment create --role "Storage Blob Data Reader" \
    --assignee-object-id "$principal" --assignee-principal-type ServicePrincipal \
    --scope "$account_id/blobServices/default/containers/$container"

kubectl create serviceaccount "$service_account" --namespace="$namespace" --dry-run=client --output=yaml |
    kubectl annotate --local --filename=- --output=yaml "azure.workload.identity/client-id=$client_id" |
    kubectl apply --filename=-
