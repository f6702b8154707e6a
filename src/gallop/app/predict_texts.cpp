#include <algorithm>

#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/predict.h"
#include "gallop/app/prediction_printer.h"
#include "gallop/app/print.h"
#include "gallop/base/text.h"
#include "gallop/data/loader.h"
#include "gallop/data/part.h"
#include "gallop/data/tagged_text.h"
#include "gallop/data/text_columns.h"
#include "gallop/data/tokenizer.h"
#include "gallop/precision/precision.h"

namespace gallop::app {

namespace {

/// Predicts texts one by one.
class TextPredictor {
 public:
  TextPredictor(TrainedRun& run, const PredictRequest& request)
      : run_(run),
        task_(run.recipe.recipe.registries->tasks.find(run.inputs.task)),
        tokenizer_(run.inputs),
        printer_(run.inputs, task_, request) {}

  void predict_text(const std::string& name, const std::string& text) {
    try {
      const auto units = data::split_units(tokenizer_.unit(), text);
      predict_units(name, {units.begin(), units.end()});
    } catch (const DataError& error) {
      printer_.print_broken(name, fmt::format("{}: {}", printable(name), error.what()).c_str());
      result_ = ExitCode::kData;
    }
  }

  void predict_file(const std::string& file) {
    if (task_.per_element && (file.ends_with(".conll") || file.ends_with(".tsv"))) {
      const data::TextTable sentences = data::read_sentences_to_tag(file);
      for (const data::TextRow& row : sentences.rows) {
        predict_units(fmt::format("{}:{}", file, row.line), row.values);
      }
      return;
    }
    const data::TextTable table = data::read_texts_to_predict(file, run_.inputs.columns);
    for (const data::TextRow& row : table.rows) {
      predict_text(fmt::format("{}:{}", file, row.line), row.values.front());
    }
  }

  void predict_samples(const data::Samples& samples) {
    data::Loader loader(samples, {.batch = 1, .threads = 1, .shuffle = false}, {});
    for (int64_t i = 0; i < samples.size(); ++i) {
      const auto batch = loader.next();
      const at::Tensor& tokens = batch->input();
      const auto length = tokens.ne(data::kPaddingToken).sum().item<int64_t>();
      std::vector<std::string> units;
      for (int64_t t = 0; t < length; ++t) {
        const auto token = static_cast<size_t>(tokens[0][t].item<int64_t>());
        units.push_back(data::from_hex(run_.inputs.vocabulary[token]));
      }
      print(samples.describe(i), units, tokens.narrow(1, 0, length));
    }
  }

  ExitCode result() const { return result_; }

 private:
  void predict_units(const std::string& name, std::vector<std::string> units) {
    if (units.empty()) throw DataError("the text is empty");
    const auto most = static_cast<size_t>(run_.inputs.context);
    if (units.size() > most) {
      print_error("gallop: warning: {}: of {} {} the model uses only the first {}\n",
                  printable(name), units.size(), tokenizer_.unit(), most);
      units.resize(most);
    }
    const at::Tensor input = at::full({1, static_cast<int64_t>(units.size())}, 0, at::kLong);
    for (size_t i = 0; i < units.size(); ++i) {
      input.mutable_data_ptr<int64_t>()[i] = tokenizer_.token_of(units[i]);
    }
    print(name, units, input);
  }

  // `input`: tokens [1, T].
  void print(const std::string& name, const std::vector<std::string>& units,
             const at::Tensor& input) {
    const precision::AutocastGuard autocast(run_.precision(), c10::kCPU);
    const at::Tensor outputs = run_.model->forward(input)[0].to(at::kFloat);
    if (task_.per_element) {
      printer_.print_tags(name, units, outputs);
    } else {
      printer_.print(name, outputs);
    }
  }

  TrainedRun& run_;
  const train::Task& task_;
  data::Tokenizer tokenizer_;
  PredictionPrinter printer_;
  ExitCode result_ = ExitCode::kDone;
};

}  // namespace

ExitCode predict_texts(TrainedRun& run, const PredictRequest& request) {
  const int sources = (request.files.empty() ? 0 : 1) + (request.data.empty() ? 0 : 1) +
                      (request.prompt.empty() ? 0 : 1);
  if (sources != 1) {
    throw UsageError(
        "no input texts; specify files (gallop predict RUN new.txt, with one text per line, or "
        ".csv, .tsv or .jsonl), --prompt TEXT, or --data test, a split of the run's data");
  }
  TextPredictor predictor(run, request);
  if (!request.prompt.empty()) predictor.predict_text("prompt", request.prompt);
  if (!request.data.empty()) {
    const auto part = data::part_of_word(request.data);
    if (!part) {
      throw UsageError(
          fmt::format("--data is '{}', and must be train, validation or test for texts; name files "
                      "without --data",
                      printable(request.data)));
    }
    predictor.predict_samples(*open_part(run, *part, request.data).samples);
  }
  for (const std::string& file : request.files) predictor.predict_file(file);
  return predictor.result();
}

}  // namespace gallop::app
