#include <algorithm>

#include <ATen/ops/argmax.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/json_line.h"
#include "gallop/app/predict.h"
#include "gallop/app/print.h"
#include "gallop/app/recipe_components.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/data/file_images.h"
#include "gallop/data/image_samples.h"
#include "gallop/data/loader.h"
#include "gallop/data/part.h"
#include "gallop/data/png_writer.h"
#include "gallop/data/table.h"
#include "gallop/precision/precision.h"

namespace gallop::app {

namespace {

using Target = train::MetricTask::Target;

/// Prints the prediction for one sample.
class Printer {
 public:
  Printer(const TrainedRun& run, const train::Task& task, const PredictRequest& request)
      : inputs_(run.inputs), task_(task), request_(request) {
    if (!request.output.empty()) make_folders(request.output);
  }

  /// `outputs`: the model's for this sample, fp32.
  void print(const std::string& name, const at::Tensor& outputs) const {
    if (task_.target == Target::kNumbers) {
      print_numbers(name, outputs);
    } else if (task_.target == Target::kLabels) {
      print_labels(name, outputs.sigmoid());
    } else if (task_.per_element) {
      print_mask(name, outputs.argmax(0));
    } else {
      print_classes(name, at::softmax(outputs, 0));
    }
  }

  void print_broken(const std::string& name, const char* reason) const {
    if (request_.json) {
      fmt::print("{}\n", json_line(nlohmann::ordered_json{{"file", name}, {"error", reason}}));
    } else {
      print_error("gallop: {}\n", reason);
    }
  }

 private:
  void print_classes(const std::string& name, const at::Tensor& probabilities) const {
    const at::Tensor order = probabilities.argsort(0, true);
    nlohmann::ordered_json object{{"file", name}, {"guesses", nlohmann::json::array()}};
    if (!request_.json) fmt::print("{}\n", printable(name));
    for (int64_t i = 0; i < std::min<int64_t>(request_.top, order.size(0)); ++i) {
      const auto index = order[i].item<int64_t>();
      print_share(inputs_.classes[static_cast<size_t>(index)], "probability",
                  probabilities[index].item<double>(), object["guesses"]);
    }
    if (request_.json) fmt::print("{}\n", json_line(object));
  }

  // Labels that are likely; as JSON all of them.
  void print_labels(const std::string& name, const at::Tensor& probabilities) const {
    nlohmann::ordered_json object{{"file", name}, {"labels", nlohmann::json::array()}};
    if (!request_.json) fmt::print("{}\n", printable(name));
    bool has_any = false;
    for (size_t i = 0; i < inputs_.classes.size(); ++i) {
      const double probability = probabilities[static_cast<int64_t>(i)].item<double>();
      if (!request_.json && probability < 0.5) continue;
      has_any = true;
      print_share(inputs_.classes[i], "probability", probability, object["labels"]);
    }
    if (request_.json) {
      fmt::print("{}\n", json_line(object));
    } else if (!has_any) {
      fmt::print("  no label\n");
    }
  }

  void print_share(const std::string& name, const char* key, double share,
                   nlohmann::ordered_json& list) const {
    if (request_.json) {
      list.push_back({{"class", name}, {key, share}});
    } else {
      fmt::print("  {:<24} {:5.1f} %\n", printable(name), 100 * share);
    }
  }

  void print_numbers(const std::string& name, const at::Tensor& outputs) const {
    nlohmann::ordered_json object{{"file", name}};
    std::string line;
    for (size_t i = 0; i < inputs_.targets.size(); ++i) {
      const double value = outputs.reshape(-1)[static_cast<int64_t>(i)].item<double>();
      object[inputs_.targets[i]] = value;
      line += fmt::format("  {} {:.6g}", printable(inputs_.targets[i]), value);
    }
    if (request_.json) {
      fmt::print("{}\n", json_line(object));
    } else {
      fmt::print("{}{}\n", printable(name), line);
    }
  }

  // The share of each class, and where there is a folder for it the mask.
  void print_mask(const std::string& name, const at::Tensor& classes) const {
    const at::Tensor counts = classes.reshape(-1).bincount({}, inputs_.outputs());
    nlohmann::ordered_json object{{"file", name}, {"classes", nlohmann::json::array()}};
    if (!request_.json) fmt::print("{}\n", printable(name));
    for (size_t i = 0; i < inputs_.classes.size(); ++i) {
      const auto count = counts[static_cast<int64_t>(i)].item<int64_t>();
      const double share = static_cast<double>(count) / static_cast<double>(classes.numel());
      if (request_.json || count > 0) {
        print_share(inputs_.classes[i], "share", share, object["classes"]);
      }
    }
    if (!request_.output.empty()) {
      const std::string file = write_mask(name, classes);
      object["mask"] = file;
      if (!request_.json) fmt::print("  mask {}\n", printable(file));
    }
    if (request_.json) fmt::print("{}\n", json_line(object));
  }

  std::string write_mask(const std::string& name, const at::Tensor& classes) const {
    const at::Tensor bytes = classes.to(at::kByte).contiguous();
    data::Image image;
    image.height = static_cast<int>(bytes.size(0));
    image.width = static_cast<int>(bytes.size(1));
    image.channels = 1;
    const auto* const pixels = bytes.const_data_ptr<uint8_t>();
    image.pixels.assign(pixels, pixels + bytes.numel());
    const fs::path file = fs::path(request_.output) / (fs::path(name).stem().string() + ".png");
    write_file_atomically(file, data::encode_png(image));
    return file.string();
  }

  const data::Signature& inputs_;
  const train::Task& task_;
  const PredictRequest& request_;
};

ExitCode predict_all(TrainedRun& run, const PredictRequest& request, const data::Samples& samples) {
  const Printer printer(run, run.recipe.recipe.registries->tasks.find(run.inputs.task), request);
  data::Loader loader(samples, {.batch = 1, .threads = 1, .shuffle = false}, {});
  ExitCode result = ExitCode::kDone;
  for (int64_t i = 0; i < samples.size(); ++i) {
    const std::string name = samples.describe(i);
    try {
      const auto batch = loader.next();
      if (batch->size() == 0) continue;
      const precision::AutocastGuard autocast(run.precision(), c10::kCPU);
      printer.print(name, run.model->forward(batch->by_role())[0].to(at::kFloat));
    } catch (const DataError& error) {
      printer.print_broken(name, error.what());
      result = ExitCode::kData;
    }
  }
  return result;
}

ExitCode predict_images(TrainedRun& run, const PredictRequest& request,
                        const std::vector<std::string>& files) {
  const bool orient = run.recipe.recipe.data.exif_orientation == "apply";
  const data::FileImages images(files, orient);
  return predict_all(run, request, data::ImageSamples(images, data::pipeline_of(run.inputs), {}));
}

ExitCode predict_tables(TrainedRun& run, const PredictRequest& request) {
  ExitCode result = ExitCode::kDone;
  for (const std::string& file : request.files) {
    const auto rows = data::table_rows(file, run.inputs);
    result = std::max(result, predict_all(run, request, *rows));
  }
  return result;
}

// A split of the run's data; its targets are not asked for.
ExitCode predict_split(TrainedRun& run, const PredictRequest& request, data::Part part) {
  const Recipe& recipe = run.recipe.recipe;
  const Registries& registries = *recipe.registries;
  const auto data = run.inputs.is_images() ? read_data(registries, recipe)
                                           : open_data_for(registries, recipe, run.inputs);
  const data::Samples* const samples = data->samples_for(part, run.inputs);
  if (samples == nullptr) {
    throw UsageError(fmt::format("--data {}: the data of {} have no {} part", request.data,
                                 run.folder.string(), data::kPartNames[static_cast<size_t>(part)]));
  }
  return predict_all(run, request, *samples);
}

}  // namespace

ExitCode predict_samples(TrainedRun& run, const PredictRequest& request) {
  const bool is_images = run.inputs.is_images();
  if (request.files.empty() == request.data.empty()) {
    throw UsageError(
        is_images
            ? "which images? For example: gallop predict RUN photo.jpg, or a folder of images or a "
              "part of the run's data: gallop predict RUN --data test"
            : "which rows? For example: gallop predict RUN new.csv, or a part of the run's data: "
              "gallop predict RUN --data test");
  }
  if (!request.data.empty()) {
    if (const auto part = data::part_of_word(request.data)) {
      return predict_split(run, request, *part);
    }
    if (is_images) return predict_images(run, request, data::image_files_in(request.data));
    throw UsageError(
        fmt::format("--data is '{}', and must be train, validation or test for a table; name CSV "
                    "files without --data",
                    printable(request.data)));
  }
  if (is_images) return predict_images(run, request, request.files);
  return predict_tables(run, request);
}

}  // namespace gallop::app
