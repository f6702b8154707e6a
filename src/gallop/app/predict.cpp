#include "gallop/app/predict.h"

#include <ATen/core/grad_mode.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/non_negative.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

// A language model predicts tokens of texts, separate or not.
bool is_of_separate_texts(const TrainedModel& run) {
  return run.inputs.separate_texts && !run.task().prediction.is_text();
}

bool continues_texts(const TrainedModel& run) {
  return run.task().prediction.form == train::Prediction::Form::kNextToken;
}

// A plug-in may name a task for data that it does not suit.
void require_fitting_data(const TrainedModel& run) {
  const train::Prediction& prediction = run.task().prediction;
  const data::Signature& inputs = run.inputs;
  std::string missing;
  if (prediction.is_text() && !inputs.is_text()) {
    missing = fmt::format("texts, and these data are {}", inputs.kind);
  } else if (prediction.form == train::Prediction::Form::kMaskedTokens &&
             inputs.mask_token.empty()) {
    missing = "data that name a mask token";
  } else if (inputs.is_text() && !inputs.separate_texts && !prediction.is_text()) {
    missing = "separate texts, and these data are running text";
  }
  if (missing.empty()) return;
  throw UsageError(fmt::format(
      "the prediction of task '{}' needs {}; give the task the prediction of these data",
      printable(inputs.task), missing));
}

// Rejects options that do not apply to a model of separate texts.
void require_options_of_texts(const CLI::App& parser, const TrainedModel& run) {
  for (const char* option : {"--length", "--temperature", "--seed", "--output"}) {
    if (parser.count(option) == 0) continue;
    throw UsageError(
        fmt::format("{} does not apply to {}, whose task is {}; specify a text file "
                    "or --prompt TEXT",
                    option, run.folder.string(), run.inputs.task));
  }
}

// Why a language model does not take the option.
std::string for_language_model(const std::string& option, const TrainedModel& run) {
  const std::string folder = run.folder.string();
  std::string text = fmt::format(
      "{} does not apply to {}, a language model, which {}; specify --prompt TEXT or text files",
      option, folder, continues_texts(run) ? "continues texts" : "fills in masked tokens");
  if (option != "--data") return text;
  return text + fmt::format(". To measure its loss on a split of its data: {}",
                            shell_line({"gallop", "evaluate", folder}));
}

// Rejects options of the other kind of model, which would have no effect.
void require_fitting_options(const CLI::App& parser, const TrainedModel& run) {
  if (is_of_separate_texts(run)) return require_options_of_texts(parser, run);
  const bool is_text = run.inputs.is_text();
  std::vector<const char*> foreign{"--prompt", "--length", "--temperature", "--seed"};
  if (is_text) {
    foreign = {"--data", "--output"};
    if (continues_texts(run)) foreign.push_back("--top");
  }
  for (const char* option : foreign) {
    if (parser.count(option) == 0) continue;
    if (is_text) throw UsageError(for_language_model(option, run));
    throw UsageError(fmt::format(
        "{} is for text models, and {} was trained on {}; {}", option, run.folder.string(),
        run.inputs.kind,
        run.inputs.is_images() ? "specify image files, or --data with a folder of them"
                               : "specify table files, or --data with a split of the run's data"));
  }
}

}  // namespace

ExitCode run_predict(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Predict files with a trained model: the classes or masks of images, the targets of the rows "
      "of a table, the classes or embeddings of texts, the similarity of pairs of texts, the "
      "continuation of a text or its masked tokens.\n\n"
      "Example: gallop predict cifar10-1 photo.jpg\n"
      "         gallop predict cifar10-1 --data test\n"
      "         gallop predict houses-1 new.csv --output predicted.csv\n"
      "         gallop predict reviews-1 --prompt \"What a film!\"\n"
      "         gallop predict shakespeare-1 --prompt \"ROMEO:\" --length 300",
      "gallop predict");
  std::string run_name, runs = "runs", checkpoint = "best";
  PredictRequest request;
  parser.add_option("RUN", run_name, "a run's name or folder")->required();
  parser.add_option("FILE", request.files,
                    "image files, tables, files of texts, or text files to continue");
  parser.add_option("--data", request.data,
                    "a folder of image files, or train, validation or test of the run's data");
  parser.add_option("--output", request.output,
                    "folder for the predicted masks of segmentation; CSV file for the predictions "
                    "of the rows of a table");
  parser.add_option("--prompt", request.prompt,
                    "text to continue, to classify, to embed, or with [MASK] to fill in");
  parser.add_option("--length", request.length, "tokens to generate")
      ->check(CLI::Range(1, 1 << 24));
  parser.add_option("--temperature", request.temperature, "sampling temperature; 0: greedy")
      ->check(CLI::Range(0.0, 100.0));
  parser.add_option("--top", request.top, "number of classes or tokens to print")
      ->check(CLI::Range(1, 1000));
  parser.add_option("--seed", request.seed, "seed of sampling")->check(non_negative());
  parser.add_option("--checkpoint", checkpoint, "checkpoint: best, latest or a step number");
  parser.add_option("--runs", runs, "folder of the runs");
  parser.add_flag("--json", request.json, "print JSON");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  require_alone("predict");

  const at::NoGradGuard no_gradients;
  const Registries& registries = command.registries();
  TrainedModel run = open_trained_model(registries, runs, run_name, checkpoint, {});
  run.model->set_training(false);
  require_fitting_data(run);
  require_fitting_options(parser, run);
  if (is_of_separate_texts(run)) return predict_texts(run, request);
  if (!run.inputs.is_text()) return predict_samples(run, request);
  predict_text(run, request);
  return ExitCode::kDone;
}

}  // namespace gallop::app
