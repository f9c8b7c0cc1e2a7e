#!/bin/bash
set -e
export WANDB_MODE=offline
accelerate launch --config_file accelerate.yaml --num_processes 8 \
  sft.py --config sft.yaml --learning_rate 2e-5
