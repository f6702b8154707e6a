#include <set>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/trained_model.h"
#include "gallop/base/text.h"
#include "gallop/tensor/safetensors.h"
#include "gallop/train/checkpoint.h"
#include "gallop/tune/nni.h"

namespace gallop::app {

namespace {

constexpr const char* kEnding = ".safetensors";
constexpr int64_t kLargestSpace = 1 << 20;

struct Arguments {
  std::string run, file, runs = "runs", checkpoint = "best", type = "kept";
  bool force = false;
};

bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  CLI::App parser(
      "Export the weights of a run to one safetensors file for other programs, however many\n"
      "processes saved them; or convert an NNI search space to a sweep.\n\n"
      "Example: gallop convert runs/fashion-mnist-1 weights.safetensors\n"
      "         gallop convert space.json sweep.yaml\n",
      "gallop convert");
  parser.add_option("RUN", arguments.run, "a run, a checkpoint, or an NNI search space (.json)")
      ->required();
  parser.add_option("FILE", arguments.file, "output file, NAME.safetensors or NAME.yaml")
      ->required();
  parser.add_option("--checkpoint", arguments.checkpoint,
                    "checkpoint: best, latest, or a step number");
  parser.add_option("--runs", arguments.runs, "folder of the runs");
  parser
      .add_option("--type", arguments.type,
                  "data type of floating-point tensors; by default as stored")
      ->check(CLI::IsMember(std::set<std::string>{"kept", "fp32", "bf16", "fp16"}));
  parser.add_flag("--force", arguments.force, "overwrite an existing file");
  return parse_arguments(parser, args);
}

NamedTensors with_type(NamedTensors tensors, const std::string& name) {
  if (name == "kept") return tensors;
  const at::ScalarType type = name == "fp32"   ? at::kFloat
                              : name == "bf16" ? at::kBFloat16
                                               : at::kHalf;
  for (auto& [_, tensor] : tensors) {
    if (tensor.is_floating_point()) tensor = tensor.to(type);
  }
  return tensors;
}

// Writes the file atomically.
WrittenFile write_in_one_step(const fs::path& file, const NamedTensors& tensors) {
  const fs::path temporary = file.string() + ".new";
  try {
    WrittenFile written = write_safetensors(temporary, tensors, {{"format", "pt"}});
    fs::rename(temporary, file);
    return written;
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

void refuse_existing(const Arguments& arguments) {
  if (fs::exists(arguments.file) && !arguments.force) {
    throw UsageError(
        fmt::format("{} already exists; use --force to overwrite it", printable(arguments.file)));
  }
}

ExitCode convert_space(const Arguments& arguments) {
  if (!arguments.file.ends_with(".yaml")) {
    throw UsageError(
        fmt::format("{}: the output of a search space is a sweep, whose name must end in .yaml",
                    printable(arguments.file)));
  }
  if (!fs::exists(arguments.run)) {
    throw UsageError(fmt::format("there is no file '{}'", printable(arguments.run)));
  }
  refuse_existing(arguments);
  const std::string sweep =
      tune::sweep_of_nni(read_file(arguments.run, kLargestSpace), arguments.run);
  write_file_atomically(arguments.file,
                        fmt::format("# The search space of NNI in {}. Add 'metric', and "
                                    "'recipe' or 'command'.\n{}",
                                    printable(arguments.run), sweep));
  fmt::print("{}: add 'metric', and 'recipe' or 'command'\n", printable(arguments.file));
  return ExitCode::kDone;
}

}  // namespace

ExitCode run_convert(const CommandContext& /*command*/, const std::vector<std::string>& arguments) {
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;
  require_alone("convert");
  if (parsed.run.ends_with(".json")) return convert_space(parsed);
  const fs::path file(parsed.file);
  if (!parsed.file.ends_with(kEnding)) {
    throw UsageError(
        fmt::format("{}: the output file must end in {}", printable(parsed.file), kEnding));
  }
  refuse_existing(parsed);
  const fs::path folder = find_checkpoint(parsed.runs, parsed.run, parsed.checkpoint);
  const train::CheckpointStore store(folder.parent_path());
  const NamedTensors model = with_type(store.read_model({.folder = folder}), parsed.type);
  const WrittenFile written = write_in_one_step(file, model);
  fmt::print("{}: {} tensors, {}, from {}\n", printable(parsed.file), model.size(),
             format_bytes(written.bytes), printable(folder.string()));
  return ExitCode::kDone;
}

}  // namespace gallop::app
