"""What has changed since the training: answers to new texts beside those to held-out rows, without labels."""
