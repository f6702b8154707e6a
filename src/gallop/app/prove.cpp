#include <algorithm>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/command.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/json_line.h"
#include "gallop/app/print.h"
#include "gallop/app/proven_training.h"
#include "gallop/app/signals.h"
#include "gallop/train/prove/proof_text.h"

namespace gallop::app {

namespace {

struct Arguments {
  std::string recipe, runs = "runs";
  ProveConfig prove;
  bool json = false;
  std::vector<Override> overrides;
};

bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  CLI::App parser(
      "Run the first steps of a training as it is configured (precision, compilation, kernels,\n"
      "gradient accumulation, activation checkpointing, processes) and plain steps of LibTorch's\n"
      "operators on the same samples, and compare outputs, loss, gradients and updated weights\n"
      "with the bound for that precision. Exit code 1: they differ. Nothing is stored.\n\n"
      "Example: gallop prove fashion-mnist train.precision=bf16",
      "gallop prove");
  parser.add_option("RECIPE", arguments.recipe, "a recipe's name or file")->required();
  parser.add_option("--steps", arguments.prove.steps, "number of steps to compare; 5 by default");
  parser
      .add_option("--reference", arguments.prove.reference,
                  "fp64, fp32, or auto: fp64 if that takes less than two minutes")
      ->check(CLI::IsMember({"auto", "fp64", "fp32"}));
  parser.add_option("--runs", arguments.runs, "folder of the teacher's run; runs by default");
  parser.add_flag("--json", arguments.json, "print JSON");
  std::vector<std::string> rest = args;
  arguments.overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return false;
  if (arguments.prove.steps < 1) throw UsageError("--steps must be at least 1");
  return true;
}

void print_json(const ProvenTraining& proven) {
  auto object = nlohmann::ordered_json::parse(train::proof_json(proven.proof));
  object["training"] = proven.training;
  object["reference"] = proven.reference;
  print_to(stdout, "{}\n", json_line(object));
}

void print_text(const ProvenTraining& proven) {
  print_to(stdout, "{}\nreference  {}\n\n{}\n", proven.training, proven.reference,
           train::proof_text(proven.proof));
  if (proven.difference.empty()) {
    print_to(stdout, "proven: no error exceeds its bound\n");
  } else {
    print_to(stdout, "not proven: {}\n", proven.difference);
  }
}

}  // namespace

ExitCode run_prove(const CommandContext& command, const std::vector<std::string>& arguments) {
  StopRequest stop;
  const SignalGuard signals(stop);
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;
  const DistributedContext context = DistributedContext::join();
  const ProvenTraining proven = prove_training(
      load_recipe(command.registries(), context.collectives(), parsed.recipe, parsed.overrides),
      parsed.runs, context, parsed.prove, stop);
  if (proven.training.empty()) return ExitCode::kStopped;
  if (context.is_first()) {
    if (parsed.json) {
      print_json(proven);
    } else {
      print_text(proven);
    }
  }
  return proven.difference.empty() ? ExitCode::kDone : ExitCode::kInternal;
}

}  // namespace gallop::app
