#!/bin/bash
litgpt finetune_lora --config lora.yaml
