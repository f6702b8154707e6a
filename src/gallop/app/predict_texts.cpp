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

using Units = std::vector<std::string>;

/// Predicts texts one by one.
class TextPredictor {
 public:
  TextPredictor(TrainedModel& run, const PredictRequest& request)
      : run_(run),
        task_(run.task()),
        tokenizer_(run.inputs),
        printer_(run.inputs, task_, request) {}

  /// One text; or where texts get embeddings, one or both of a pair.
  void predict_texts(const std::string& name, const std::vector<std::string>& texts) {
    try {
      std::vector<Units> all;
      for (const std::string& text : texts) {
        const auto units = data::split_units(tokenizer_.unit(), text);
        all.emplace_back(units.begin(), units.end());
      }
      predict_units(name, std::move(all));
    } catch (const DataError& error) {
      printer_.print_broken(name, fmt::format("{}: {}", printable(name), error.what()).c_str());
      result_ = ExitCode::kData;
    }
  }

  void predict_file(const std::string& file) {
    const bool has_tags = task_.prediction.form == train::Prediction::Form::kClassPerElement;
    if (has_tags && (file.ends_with(".conll") || file.ends_with(".tsv"))) {
      const data::TextTable sentences = data::read_sentences_to_tag(file);
      for (const data::TextRow& row : sentences.rows) {
        predict_units(fmt::format("{}:{}", file, row.line), {row.values});
      }
      return;
    }
    const data::TextTable table = data::read_texts_to_predict(file, run_.inputs.columns);
    for (const data::TextRow& row : table.rows) {
      predict_texts(fmt::format("{}:{}", file, row.line), row.values);
    }
  }

  void predict_samples(const data::Samples& samples) {
    data::Loader loader(samples, {.batch = 1, .threads = 1, .shuffle = false}, {});
    for (int64_t i = 0; i < samples.size(); ++i) {
      const auto batch = loader.next();
      const at::Tensor& tokens = batch->input();
      if (has_embeddings()) {
        print(samples.describe(i), {}, tokens);
        continue;
      }
      const auto length = tokens.ne(data::kPaddingToken).sum().item<int64_t>();
      Units units;
      for (int64_t t = 0; t < length; ++t) {
        const auto token = static_cast<size_t>(tokens[0][t].item<int64_t>());
        units.push_back(data::from_hex(run_.inputs.vocabulary[token]));
      }
      print(samples.describe(i), units, tokens.narrow(1, 0, length));
    }
  }

  ExitCode result() const { return result_; }

 private:
  bool has_embeddings() const { return run_.inputs.views > 1; }

  void cut(const std::string& name, Units& units) const {
    if (units.empty()) throw DataError("the text is empty");
    const auto most = static_cast<size_t>(run_.inputs.context);
    if (units.size() <= most) return;
    print_error("gallop: warning: {}: has {} {}, of which the model uses only the first {}\n",
                printable(name), units.size(), tokenizer_.unit(), most);
    units.resize(most);
  }

  void predict_units(const std::string& name, std::vector<Units> texts) {
    size_t longest = 0;
    for (Units& units : texts) {
      cut(name, units);
      longest = std::max(longest, units.size());
    }
    const at::Tensor tokens =
        at::full({1, static_cast<int64_t>(longest), static_cast<int64_t>(texts.size())},
                 data::kPaddingToken, at::kLong);
    auto* const values = tokens.mutable_data_ptr<int64_t>();
    for (size_t text = 0; text < texts.size(); ++text) {
      for (size_t i = 0; i < texts[text].size(); ++i) {
        values[i * texts.size() + text] = tokenizer_.token_of(texts[text][i]);
      }
    }
    print(name, texts.front(), has_embeddings() ? tokens : tokens.squeeze(2));
  }

  // `input`: tokens [1, T], or [1, T, views] where texts get embeddings.
  void print(const std::string& name, const Units& units, const at::Tensor& input) {
    const precision::AutocastGuard autocast(run_.precision(), c10::kCPU);
    printer_.print_text(name, units, run_.model->forward(input)[0].to(at::kFloat));
  }

  TrainedModel& run_;
  const train::Task& task_;
  data::Tokenizer tokenizer_;
  PredictionPrinter printer_;
  ExitCode result_ = ExitCode::kDone;
};

}  // namespace

ExitCode predict_texts(TrainedModel& run, const PredictRequest& request) {
  const int sources = (request.files.empty() ? 0 : 1) + (request.data.empty() ? 0 : 1) +
                      (request.prompt.empty() ? 0 : 1);
  if (sources > 1) {
    throw UsageError("specify only one of files, --data and --prompt");
  }
  if (sources == 0) {
    throw UsageError(
        "no input texts; specify files (gallop predict RUN new.txt, with one text per line, or "
        ".csv, .tsv or .jsonl), --prompt TEXT, or --data test, a split of the run's data");
  }
  TextPredictor predictor(run, request);
  if (!request.prompt.empty()) predictor.predict_texts("prompt", {request.prompt});
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
