#!/bin/sh
# Makes the ssh key pair of the job finetune and puts it into the Secret finetune-ssh. Run it again for
# another pair. The private key is on this machine's disk only while the script runs.
set -eu

namespace=''
secret=finetune-ssh

umask 077
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

ssh-keygen -q -t ed25519 -N '' -C "$secret" -f "$folder/ssh-privatekey"
mv "$folder/ssh-privatekey.pub" "$folder/ssh-publickey"

kubectl create secret generic "$secret" ${namespace:+"--namespace=$namespace"} --dry-run=client --output=yaml \
    --from-file="$folder/ssh-privatekey" --from-file="$folder/ssh-publickey" |
    kubectl apply ${namespace:+"--namespace=$namespace"} --filename=-
