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
  explicit RowWriter(const TrainedModel& run) : inputs_(run.inputs) {
    std::vector<std::string> names = {"line"};
    if (is_class()) names.push_back(inputs_.label.empty() ? "class" : inputs_.label);
    for (const std::string& name : inputs_.classes) names.push_back("probability of " + name);
    for (const std::string& name : inputs_.targets) {
      if (inputs_.target_outputs.empty()) names.push_back(name);
      for (const std::string& output : inputs_.target_outputs)
        names.push_back(fmt::format("{} {}", name, output));
    }
    text_ = csv_line(names);
  }

  void add(const std::string& line, const at::Tensor& outputs) {
    std::vector<std::string> fields = {line};
    if (inputs_.classes.empty()) {
      for (const double value : numbers_of(inputs_, outputs)) fields.push_back(number(value));
    } else {
      const at::Tensor shares =
          (is_class() ? at::softmax(outputs, 0) : outputs.sigmoid()).to(at::kDouble).contiguous();
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
  bool is_class() const { return inputs_.task == "classification"; }

  const data::Signature& inputs_;
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
