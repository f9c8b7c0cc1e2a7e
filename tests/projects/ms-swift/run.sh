#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1
NPROC_PER_NODE=2 swift sft \
  --model ./model \
  --dataset acme/instructions \
  --train_type lora \
  --lora_rank 16 \
  --target_modules all-linear \
  --torch_dtype bfloat16 \
  --max_length 2048 \
  --per_device_train_batch_size 2 \
  --gradient_accumulation_steps 4 \
  --learning_rate 1e-4 \
  --num_train_epochs 1 \
  --deepspeed zero3.json \
  --output_dir runs/sft
