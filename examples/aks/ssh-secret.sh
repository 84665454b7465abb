#!/bin/sh
# Makes the ssh key pair of the job finetune and puts it into the Secret finetune-azcp-ssh. Run it again for
# another pair, but not while the job runs: its pods would hold two. The private key is on this machine's disk only
# while the script runs; applied on the server's side, it is in no annotation either.
set -eu

namespace=''
secret=finetune-azcp-ssh

umask 077
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

ssh-keygen -q -t ed25519 -N '' -C "$secret" -f "$folder/ssh-privatekey"
mv "$folder/ssh-privatekey.pub" "$folder/ssh-publickey"

kubectl create secret generic "$secret" ${namespace:+"--namespace=$namespace"} --dry-run=client --output=yaml \
    --from-file="$folder/ssh-privatekey" --from-file="$folder/ssh-publickey" |
    kubectl apply --server-side --force-conflicts ${namespace:+"--namespace=$namespace"} --filename=-
