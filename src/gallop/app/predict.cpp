#include <algorithm>
#include <cstdio>
#include <map>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/softmax.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/command.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/print.h"
#include "gallop/app/trained_run.h"
#include "gallop/base/file.h"
#include "gallop/base/hardware.h"
#include "gallop/base/philox.h"
#include "gallop/base/text.h"
#include "gallop/data/file_images.h"
#include "gallop/data/loader.h"
#include "gallop/data/part.h"
#include "gallop/kernel/shared_cores.h"
#include "gallop/precision/precision.h"

namespace gallop::app {

namespace {

struct Request {
  std::vector<std::string> files;
  std::string data;
  std::string prompt;
  int64_t length = 500;
  double temperature = 0.8;
  int64_t top = 3;
  int64_t seed = 1;
  bool json = false;
};

struct Prediction {
  std::string name;
  double probability;
};

std::vector<Prediction> best_predictions(const at::Tensor& probabilities,
                                         const std::vector<std::string>& names, int64_t count) {
  const at::Tensor order = probabilities.argsort(0, true);
  std::vector<Prediction> predictions;
  for (int64_t i = 0; i < std::min<int64_t>(count, order.size(0)); ++i) {
    const auto index = order[i].item<int64_t>();
    predictions.push_back({names[static_cast<size_t>(index)], probabilities[index].item<double>()});
  }
  return predictions;
}

void print_predictions(const std::string& file, const std::vector<Prediction>& predictions,
                       bool json) {
  if (json) {
    nlohmann::ordered_json object{{"file", file}, {"guesses", nlohmann::json::array()}};
    for (const auto& prediction : predictions) {
      object["guesses"].push_back(
          {{"class", prediction.name}, {"probability", prediction.probability}});
    }
    fmt::print("{}\n", object.dump());
    return;
  }
  fmt::print("{}\n", printable(file));
  for (const auto& prediction : predictions) {
    fmt::print("  {:<24} {:5.1f} %\n", printable(prediction.name), 100 * prediction.probability);
  }
}

void print_broken(const std::string& file, const char* reason, bool json) {
  if (json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"file", file}, {"error", reason}}.dump());
  } else {
    print_error("gallop: {}\n", reason);
  }
}

// One image after the other, so that a broken one costs no other its answer.
ExitCode predict_set(TrainedRun& run, const Request& request, const data::ImageSet& images) {
  const data::ImageSamples samples(images, run.inputs.pipeline(), {});
  data::Loader loader(samples, {.batch = 1, .threads = 1, .shuffle = false}, {});
  ExitCode result = ExitCode::kDone;
  for (int64_t i = 0; i < images.size(); ++i) {
    const std::string file = images.describe(i);
    try {
      const auto batch = loader.next();
      const precision::AutocastGuard autocast(run.precision(), c10::kCPU);
      const at::Tensor probabilities =
          at::softmax(run.model->forward(batch->input).to(at::kFloat), 1);
      print_predictions(file, best_predictions(probabilities[0], run.inputs.classes, request.top),
                        request.json);
    } catch (const DataError& error) {
      print_broken(file, error.what(), request.json);
      result = ExitCode::kData;
    }
  }
  return result;
}

// A part of the run's data; its classes are not asked for.
ExitCode predict_part(TrainedRun& run, const Request& request, data::Part part) {
  const data::DataConfig& config = run.recipe.recipe.data;
  const int cores = read_hardware().cores;
  const auto parts =
      run.recipe.recipe.registries->readers.build(config.reader, data::read_context(config, cores));
  const data::ImageSet* images = part == data::Part::kTrain  ? parts->train_images.get()
                                 : part == data::Part::kTest ? parts->test_images.get()
                                                             : parts->validation_images.get();
  if (part == data::Part::kTest && images == nullptr) images = parts->unlabeled_test.get();
  if (images == nullptr) {
    throw UsageError(fmt::format("--data {}: the data of {} have no {} part", request.data,
                                 run.folder.string(), data::kPartNames[static_cast<size_t>(part)]));
  }
  return predict_set(run, request, *images);
}

ExitCode predict_images(TrainedRun& run, const Request& request) {
  if (request.files.empty() == request.data.empty()) {
    throw UsageError(
        "which images? For example: gallop predict RUN photo.jpg, or a folder of images or a part "
        "of the run's data: gallop predict RUN --data test");
  }
  const bool orient = run.recipe.recipe.data.exif_orientation == "apply";
  if (request.data.empty()) {
    return predict_set(run, request, data::FileImages(request.files, orient));
  }
  if (const auto part = data::part_of_word(request.data)) {
    return predict_part(run, request, *part);
  }
  return predict_set(run, request, data::FileImages(data::image_files_in(request.data), orient));
}

// Tokens of a prompt: at each place the longest token that fits, which is the only one for
// characters and bytes.
std::vector<int64_t> tokenize(const std::string& text, const std::vector<std::string>& vocabulary) {
  std::map<std::string, int64_t> numbers;
  size_t longest = 1;
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    numbers[vocabulary[i]] = static_cast<int64_t>(i);
    longest = std::max(longest, vocabulary[i].size());
  }
  std::vector<int64_t> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t length = std::min(longest, text.size() - at);
    while (length > 0 && !numbers.contains(text.substr(at, length))) --length;
    if (length == 0) {
      throw UsageError(
          fmt::format("the prompt's character at byte {} does not occur in the text that "
                      "this model was trained on",
                      at));
    }
    tokens.push_back(numbers[text.substr(at, length)]);
    at += length;
  }
  return tokens;
}

int64_t draw(const at::Tensor& logits, double temperature, Philox& random) {
  if (temperature == 0) return logits.argmax().item<int64_t>();
  const at::Tensor probabilities =
      at::softmax(logits.to(at::kDouble).div(temperature), 0).contiguous();
  double left = random.uniform();
  const auto* values = probabilities.const_data_ptr<double>();
  for (int64_t i = 0; i < probabilities.numel(); ++i) {
    left -= values[i];
    if (left < 0) return i;
  }
  return probabilities.numel() - 1;
}

// Continues `prompt` by `length` tokens and prints them as they come.
void continue_text(TrainedRun& run, const std::string& prompt, const Request& request) {
  std::vector<std::string> vocabulary;
  for (const auto& token : run.inputs.vocabulary) vocabulary.push_back(from_hex(token));
  std::vector<int64_t> tokens = tokenize(prompt, vocabulary);
  if (tokens.empty()) tokens.push_back(0);
  Philox random(static_cast<uint64_t>(request.seed), Purpose::kSample, 0, 0);
  std::string written = prompt;
  if (!request.json) std::fputs(prompt.c_str(), stdout);
  for (int64_t i = 0; i < request.length; ++i) {
    kernel::share_cores_with_others();
    const auto seen = std::min<int64_t>(run.inputs.context, static_cast<int64_t>(tokens.size()));
    const at::Tensor input =
        at::from_blob(tokens.data() + tokens.size() - static_cast<size_t>(seen), {1, seen},
                      at::TensorOptions(at::kLong));
    const precision::AutocastGuard autocast(run.precision(), c10::kCPU);
    const at::Tensor logits = run.model->forward(input)[0][seen - 1];
    tokens.push_back(draw(logits, request.temperature, random));
    const std::string& text = vocabulary[static_cast<size_t>(tokens.back())];
    written += text;
    if (request.json) continue;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
  if (request.json) {
    fmt::print("{}\n", nlohmann::json{{"text", written}}.dump(
                           -1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    std::fputs("\n", stdout);
  }
}

void predict_text(TrainedRun& run, const Request& request) {
  if (request.files.empty()) continue_text(run, request.prompt, request);
  for (const auto& file : request.files) continue_text(run, read_file(file, 1 << 24), request);
}

// Options for the other kind of model would have no effect.
void require_fitting_options(const CLI::App& parser, const TrainedRun& run) {
  const bool is_text = run.inputs.kind == "text";
  const std::vector<const char*> foreign =
      is_text ? std::vector{"--data", "--top"}
              : std::vector{"--prompt", "--length", "--temperature", "--seed"};
  for (const char* option : foreign) {
    if (parser.count(option) == 0) continue;
    throw UsageError(fmt::format("{} is for {} models, and {} was trained on {}; {}", option,
                                 is_text ? "image" : "text", run.folder.string(),
                                 is_text ? "text" : "images",
                                 is_text ? "give --prompt TEXT or text files to continue"
                                         : "name image files, or --data with a folder of them"));
  }
}

}  // namespace

ExitCode run_predict(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Classify image files with a trained model, or continue a text.\n\n"
      "Example: gallop predict cifar10-1 photo.jpg\n"
      "         gallop predict cifar10-1 --data test\n"
      "         gallop predict shakespeare-1 --prompt \"ROMEO:\" --length 300",
      "gallop predict");
  std::string run_name, runs = "runs", checkpoint = "best";
  Request request;
  parser.add_option("RUN", run_name, "a run's name or folder")->required();
  parser.add_option("FILE", request.files, "image files, or text files to continue");
  parser.add_option("--data", request.data,
                    "a folder of image files, or train, validation or test of the run's data");
  parser.add_option("--prompt", request.prompt, "text to continue");
  parser.add_option("--length", request.length, "tokens to generate")
      ->check(CLI::Range(1, 1 << 24));
  parser.add_option("--temperature", request.temperature, "sampling temperature; 0: greedy")
      ->check(CLI::Range(0.0, 100.0));
  parser.add_option("--top", request.top, "number of classes to print")->check(CLI::Range(1, 1000));
  parser.add_option("--seed", request.seed, "seed of sampling")->check(CLI::NonNegativeNumber);
  parser.add_option("--checkpoint", checkpoint, "checkpoint: best, latest or a step number");
  parser.add_option("--runs", runs, "folder of the runs");
  parser.add_flag("--json", request.json, "print JSON");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  require_alone("predict");

  const at::NoGradGuard no_gradients;
  const Registries& registries = command.registries();
  TrainedRun run = open_trained_run(registries, runs, run_name, checkpoint, {});
  run.model->set_training(false);
  require_fitting_options(parser, run);
  if (run.inputs.kind == "text") {
    predict_text(run, request);
    return ExitCode::kDone;
  }
  return predict_images(run, request);
}

}  // namespace gallop::app
