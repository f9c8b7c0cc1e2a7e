import sys

from datasets import load_dataset
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

parser = HfArgumentParser(TrainingArguments)
(training_args,) = parser.parse_yaml_file(sys.argv[1])
model = AutoModelForCausalLM.from_pretrained("./model", dtype="bfloat16")
trainer = Trainer(model=model, args=training_args, train_dataset=load_dataset("acme/corpus", split="train"))
trainer.train()
