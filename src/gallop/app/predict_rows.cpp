#include "gallop/app/predict_rows.h"

#include <cmath>

#include <ATen/ops/argmax.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>

#include "gallop/app/prediction_printer.h"
#include "gallop/base/csv.h"
#include "gallop/base/file.h"
#include "gallop/data/loader.h"

namespace gallop::app {

namespace {

// "nan" in any case, as readers of CSV expect: its sign has no meaning.
std::string number(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.9g}", value);
}

// "houses.csv:17" to "17".
std::string line_of(const std::string& description) {
  return description.substr(description.rfind(':') + 1);
}

class RowWriter {
 public:
  explicit RowWriter(const TrainedModel& run)
      : inputs_(run.inputs), prediction_(run.task().prediction) {
    require_columns(run);
    std::vector<std::string> names = {"line"};
    if (is_class()) names.push_back(inputs_.label.empty() ? "class" : inputs_.label);
    if (has_numbers()) {
      add_targets(names);
    } else {
      for (const std::string& name : inputs_.classes) names.push_back("probability of " + name);
    }
    text_ = csv_line(names);
  }

  void add(const std::string& line, const at::Tensor& outputs) {
    std::vector<std::string> fields = {line};
    const at::Tensor shown = prediction_.shown(outputs);
    if (has_numbers()) {
      for (const double value : numbers_of(inputs_, shown)) fields.push_back(number(value));
    } else {
      const at::Tensor shares =
          (is_class() ? at::softmax(shown, 0) : shown.sigmoid()).to(at::kDouble).contiguous();
      if (is_class()) {
        fields.push_back(inputs_.classes[static_cast<size_t>(shares.argmax().item<int64_t>())]);
      }
      const double* const values = shares.const_data_ptr<double>();
      for (int64_t i = 0; i < shares.numel(); ++i) fields.push_back(number(values[i]));
    }
    text_ += csv_line(fields);
  }

  const std::string& text() const { return text_; }

 private:
  using Form = train::Prediction::Form;

  bool is_class() const { return prediction_.form == Form::kClass; }
  bool has_numbers() const { return prediction_.form == Form::kNumbers; }

  void require_columns(const TrainedModel& run) const {
    if (is_class() || has_numbers() || prediction_.form == Form::kLabels) return;
    throw UsageError(
        fmt::format("--output writes a class, labels or numbers for each row, and the task of {} "
                    "is {}; redirect the output of --json to a file instead",
                    run.folder.string(), inputs_.task));
  }

  void add_targets(std::vector<std::string>& names) const {
    for (const std::string& name : inputs_.targets) {
      if (inputs_.target_outputs.empty()) names.push_back(name);
      for (const std::string& output : inputs_.target_outputs) {
        names.push_back(fmt::format("{} {}", name, output));
      }
    }
  }

  const data::Signature& inputs_;
  train::Prediction prediction_;
  std::string text_;
};

}  // namespace

void write_predicted_rows(TrainedModel& run, const data::Samples& rows, const std::string& file) {
  constexpr int64_t kBatch = 1024;
  RowWriter writer(run);
  data::Loader loader(rows, {.batch = kBatch, .threads = 1, .shuffle = false}, {});
  for (int64_t done = 0; done < rows.size();) {
    const auto batch = loader.next();
    const precision::AutocastGuard autocast(run.precision(), c10::kCPU);
    const at::Tensor outputs = run.model->forward(batch->by_role()).to(at::kFloat);
    const int64_t count = std::min(batch->size(), rows.size() - done);
    for (int64_t i = 0; i < count; ++i) writer.add(line_of(rows.describe(done + i)), outputs[i]);
    done += count;
  }
  write_file_atomically(file, writer.text());
}

}  // namespace gallop::app
