"""What has changed since the training: answers to new texts compared with those to held-out rows, without labels."""
