#include <algorithm>
#include <map>
#include <system_error>

#include <fmt/format.h>

#include "gallop/app/predict.h"
#include "gallop/app/predict_rows.h"
#include "gallop/app/prediction_printer.h"
#include "gallop/app/recipe_components.h"
#include "gallop/base/text.h"
#include "gallop/data/file_images.h"
#include "gallop/data/image_samples.h"
#include "gallop/data/loader.h"
#include "gallop/data/part.h"
#include "gallop/data/table.h"
#include "gallop/precision/precision.h"
#include "gallop/train/losses/shapes.h"

namespace gallop::app {

namespace {

// Throws UsageError if the masks of two images would be one file, or if one would overwrite an
// image.
void check_masks(const std::string& folder, const std::vector<std::string>& images) {
  std::map<fs::path, std::string> masks;
  for (const std::string& image : images) {
    const auto [mask, is_new] = masks.emplace(mask_file(folder, image), image);
    if (is_new) continue;
    throw UsageError(
        fmt::format("--output: the masks of {} and {} would both be {}; predict them in calls of "
                    "their own, with different folders",
                    mask->second, image, mask->first.string()));
  }
  for (const std::string& image : images) {
    std::error_code ignored;
    const auto mask = masks.find(fs::path(folder) / fs::path(image).filename());
    if (mask == masks.end() || !fs::equivalent(mask->first, image, ignored)) continue;
    throw UsageError(
        fmt::format("--output: the mask of {} would overwrite the image {}; give another folder",
                    mask->second, image));
  }
}

// `--output` without effect would look as if the predictions had been saved.
void check_output(const TrainedModel& run, const PredictRequest& request) {
  if (!request.output.empty() && run.inputs.views > 1) {
    throw UsageError(fmt::format(
        "--output is for masks and tables of predictions, and {} computes embeddings; redirect the "
        "output of --json to a file instead",
        run.folder.string()));
  }
  const bool has_masks = run.task().prediction.form == train::Prediction::Form::kClassPerElement;
  if (request.output.empty() || !run.inputs.is_images() || has_masks) return;
  throw UsageError(
      fmt::format("--output is for the masks of segmentation and for tables, and the task of {} is "
                  "{}; redirect the output of --json to a file instead",
                  run.folder.string(), run.inputs.task));
}

// Whether samples that were read from files are single views of a model that embeds several.
bool are_single_views(const data::Signature& inputs, const data::Samples& samples) {
  constexpr size_t kImage = 3, kRow = 1;
  return inputs.views > 1 &&
         samples.fields().input().shape.sizes.size() == (inputs.is_images() ? kImage : kRow);
}

std::vector<std::string> names_of(const data::Samples& samples) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < samples.size(); ++i) names.push_back(samples.describe(i));
  return names;
}

ExitCode predict_all(TrainedModel& run, const PredictRequest& request,
                     const data::Samples& samples) {
  const PredictionPrinter printer(run.inputs, run.task(), request);
  if (run.inputs.is_images() && !request.output.empty()) {
    check_masks(request.output, names_of(samples));
  }
  data::Loader loader(samples, {.batch = 1, .threads = 1, .shuffle = false}, {});
  const bool is_single_view = are_single_views(run.inputs, samples);
  ExitCode result = ExitCode::kDone;
  for (int64_t i = 0; i < samples.size(); ++i) {
    const std::string name = samples.describe(i);
    try {
      const auto batch = loader.next();
      if (batch->size() == 0) continue;
      const precision::AutocastGuard autocast(run.precision(), c10::kCPU);
      NamedTensors fields = batch->by_role();
      if (is_single_view) fields.front().tensor = fields.front().tensor.unsqueeze(1);
      at::Tensor outputs = run.model->forward(fields)[0].to(at::kFloat);
      if (const at::Tensor lengths = train::optional_field(fields, "input_lengths");
          run.task().has_sequences() && lengths.defined()) {
        outputs = outputs.narrow(0, 0, std::min(lengths.item<int64_t>(), outputs.size(0)));
      }
      printer.print(name, outputs);
    } catch (const DataError& error) {
      printer.print_broken(name, error.what());
      result = ExitCode::kData;
    }
  }
  return result;
}

ExitCode predict_images(TrainedModel& run, const PredictRequest& request,
                        const std::vector<std::string>& files) {
  const bool orient = run.recipe.recipe.data.exif_orientation == "apply";
  const data::FileImages images(files, orient);
  return predict_all(run, request, data::ImageSamples(images, data::pipeline_of(run.inputs), {}));
}

ExitCode predict_tables(TrainedModel& run, const PredictRequest& request) {
  if (run.inputs.context > 0) {
    throw UsageError(fmt::format(
        "{} was trained on sequences of numbers, and sequences are not read from tables; specify "
        "--data with a split of the run's data",
        run.folder.string()));
  }
  if (!request.output.empty()) {
    if (request.files.size() > 1) {
      throw UsageError(
          "--output accepts the predictions of one file only; give one file at a time");
    }
    write_predicted_rows(run, *data::table_rows(request.files.front(), run.inputs), request.output);
    return ExitCode::kDone;
  }
  ExitCode result = ExitCode::kDone;
  for (const std::string& file : request.files) {
    const auto rows = data::table_rows(file, run.inputs);
    result = std::max(result, predict_all(run, request, *rows));
  }
  return result;
}

}  // namespace

RunPart open_part(const TrainedModel& run, data::Part part, const std::string& word) {
  const Recipe& recipe = run.recipe.recipe;
  const Registries& registries = *recipe.registries;
  auto data = run.inputs.is_images() ? read_data(registries, recipe)
                                     : open_data_for(registries, recipe, run.inputs);
  const data::Samples* const samples = data->samples_for(part, run.inputs);
  if (samples == nullptr) {
    throw UsageError(fmt::format("--data {}: the data of {} have no {} split", word,
                                 run.folder.string(), data::kPartNames[static_cast<size_t>(part)]));
  }
  return {.data = std::move(data), .samples = samples};
}

ExitCode predict_samples(TrainedModel& run, const PredictRequest& request) {
  const bool is_images = run.inputs.is_images();
  check_output(run, request);
  if (!request.files.empty() && !request.data.empty()) {
    throw UsageError(fmt::format("specify either files or --data {}, not both", request.data));
  }
  if (request.files.empty() && request.data.empty()) {
    throw UsageError(is_images ? "no input images; for example: gallop predict RUN photo.jpg, or a "
                                 "folder of images or a "
                                 "split of the run's data: gallop predict RUN --data test"
                               : "no input rows; for example: gallop predict RUN new.csv, or a "
                                 "split of the run's data: "
                                 "gallop predict RUN --data test");
  }
  if (!request.data.empty()) {
    if (const auto part = data::part_of_word(request.data)) {
      const RunPart rows = open_part(run, *part, request.data);
      if (is_images || request.output.empty()) return predict_all(run, request, *rows.samples);
      write_predicted_rows(run, *rows.samples, request.output);
      return ExitCode::kDone;
    }
    if (is_images) return predict_images(run, request, data::image_files_in(request.data));
    throw UsageError(
        fmt::format("--data is '{}', and must be train, validation or test for a table; name "
                    "files without --data",
                    printable(request.data)));
  }
  if (is_images) return predict_images(run, request, request.files);
  return predict_tables(run, request);
}

}  // namespace gallop::app
