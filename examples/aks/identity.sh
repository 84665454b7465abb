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
client_id=00000000-0000-0000-0000-000000000000
namespace=training
service_account=llama

# The identity is made once, by hand, so that its client id can be in job.toml: az identity create.
found=$(az identity show --resource-group "$group" --name "$name" --query clientId --output tsv)
if [ "$found" != "$client_id" ]; then
    echo "the identity $name has the client id $found, job.toml says $client_id" >&2
    exit 1
fi
principal=$(az identity show --resource-group "$group" --name "$name" --query principalId --output tsv)

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

kubectl apply --filename=- <<'AZCP_END'
apiVersion: v1
kind: ServiceAccount
metadata:
  name: llama
  namespace: training
  labels:
    app.kubernetes.io/instance: llama
    app.kubernetes.io/managed-by: azcp-kit
  annotations:
    azure.workload.identity/client-id: "00000000-0000-0000-0000-000000000000"
AZCP_END
