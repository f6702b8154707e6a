#include <algorithm>
#include <csignal>
#include <sstream>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/rand.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/app/command.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/signals.h"
#include "gallop/app/start_run.h"
#include "gallop/base/file.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/data/tensor_samples.h"
#include "gallop/gallop.h"
#include "gallop/train/metrics/calibration.h"

// A task registered by a program, in the commands that show its predictions and reports.
namespace gallop {
namespace {

using Form = train::Prediction::Form;
using Json = nlohmann::json;

constexpr int64_t kSamples = 64, kInputs = 3;

/// Grades 0, 1 and 2 by the sum of the inputs, as labels "at least 1" and "at least 2".
std::unique_ptr<data::Samples> graded_samples() {
  // The same numbers in each call, as commands open the data again.
  const at::Generator generator = at::detail::createCPUGenerator(/*seed_val=*/5);
  const at::Tensor inputs = at::rand({kSamples, kInputs}, generator);
  const at::Tensor sums = inputs.sum(1, /*keepdim=*/true);
  const at::Tensor targets = at::cat({sums.gt(1.2), sums.gt(1.8)}, 1).to(at::kFloat);
  return std::make_unique<data::TensorSamples>(inputs, targets);
}

struct GradesConfig {};
void visit(config::Visitor& /*visitor*/, GradesConfig& /*config*/) {}

std::unique_ptr<data::DataModule> open_grades(const GradesConfig& /*config*/,
                                              const data::DataContext& /*context*/) {
  auto module = std::make_unique<data::DataModule>();
  module->signature = {.kind = "numbers",
                       .task = "ordinal",
                       .columns = {"a", "b", "c"},
                       .classes = {"at least 1", "at least 2"},
                       .targets = {"grade"}};
  module->train = graded_samples();
  module->test = graded_samples();
  return module;
}

// The number of labels that are present, as the grade.
at::Tensor grade_of(const at::Tensor& logits) {
  return logits.sigmoid().round().sum(-1, /*keepdim=*/true);
}

std::unique_ptr<train::Metric> make_coarse_reliability(const train::MetricTask& task) {
  return train::make_calibration_error({.bins = 4}, task);
}

class OwnTask : public testing::Test {
 protected:
  ~OwnTask() override {
    at::set_num_threads(threads_);
    std::signal(SIGPIPE, SIG_DFL);  // A command ignores it until its process ends.
  }

  void train(const train::Task& task) {
    registries_.tasks.add(task);
    registries_.data_modules.add("grades", "for the test", open_grades);
    const fs::path recipe = folder_.path() / "recipe.yaml";
    write_file_atomically(recipe,
                          "data: {name: grades, batch_size: 16}\n"
                          "model: {name: mlp, hidden: [8]}\n"
                          "optimizer: {name: adamw, lr: 0.05}\n"
                          "train: {epochs: 20, threads: 1, precision: fp32, compile: 'false'}\n");
    StopRequest stop;
    app::SignalGuard signals(stop, app::SignalGuard::Says::kStopping,
                             app::SignalGuard::Scope::kCall);
    const app::DistributedContext context = app::DistributedContext::join();
    const app::RunOptions options{
        .runs = folder_.path().string(), .name = "run", .can_probe = false};
    app::start_run(registries_, options, recipe.string(), {}, stop, context)
        ->train(app::ConsoleStyle::kQuiet, signals);
  }

  /// What a command prints about the run.
  std::string output(decltype(app::run_predict) command, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", "--runs", folder_.path().string()});
    testing::internal::CaptureStdout();
    try {
      command(app::CommandContext(registries_), arguments);
    } catch (...) {
      testing::internal::GetCapturedStdout();
      throw;
    }
    return testing::internal::GetCapturedStdout();
  }
  std::string error(const std::vector<std::string>& arguments) {
    try {
      output(app::run_predict, arguments);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  }
  const fs::path& folder() const { return folder_.path(); }

 private:
  const int threads_ = at::get_num_threads();
  const TemporaryFolder folder_{fs::temp_directory_path(), "gallop-own-task-test-"};
  Registries registries_;
};

train::Task ordinal_task() {
  return {.name = "ordinal",
          .summary = "a grade",
          .target = train::MetricTask::Target::kLabels,
          .prediction = {.form = Form::kNumbers, .postprocess = grade_of},
          .report = {.metrics = {train::kConfusionByLabel, {make_coarse_reliability}}}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();  // Rows of CSV files end with CRLF.
    lines.push_back(line);
  }
  return lines;
}

TEST_F(OwnTask, HasItsOwnPrediction) {
  train(ordinal_task());
  const auto lines = lines_of(output(app::run_predict, {"--data", "test", "--json"}));
  ASSERT_EQ(lines.size(), kSamples);
  std::vector<std::string> grades;
  for (const std::string& line : lines) {
    const Json json = Json::parse(line);
    ASSERT_TRUE(json.contains("grade")) << line;
    EXPECT_EQ(json.size(), 2) << line;
    grades.push_back(fmt::format("{:.9g}", json["grade"].get<double>()));
    EXPECT_TRUE(grades.back() == "0" || grades.back() == "1" || grades.back() == "2") << line;
  }
  EXPECT_NE(*std::min_element(grades.begin(), grades.end()),
            *std::max_element(grades.begin(), grades.end()));
  const fs::path csv = folder() / "rows.csv";
  output(app::run_predict, {"--data", "test", "--output", csv.string()});
  const auto rows = lines_of(read_file(csv));
  ASSERT_EQ(rows.size(), kSamples + 1);
  EXPECT_EQ(rows.front(), "line,grade");
  for (size_t i = 0; i < grades.size(); ++i) {
    EXPECT_EQ(rows[i + 1].substr(rows[i + 1].find(',') + 1), grades[i]);
  }
}

TEST_F(OwnTask, HasItsOwnReport) {
  train(ordinal_task());
  output(app::run_evaluate, {"--report", (folder() / "report").string()});
  const Json report = Json::parse(read_file(folder() / "report" / "report.json"));
  std::vector<std::string> names;
  for (const Json& figure : report["figures"]) names.push_back(figure["name"]);
  EXPECT_EQ(names,
            (std::vector<std::string>{"confusion-by-label", "reliability-4", "f1-by-class"}));
  EXPECT_EQ(report["figures"][1]["data"]["bins"].size(), 4);
  EXPECT_GT(report["metrics"]["f1"].get<double>(), 0.5);
}

TEST_F(OwnTask, HasDefaultsOfItsTarget) {
  train({.name = "ordinal", .summary = "", .target = train::MetricTask::Target::kLabels});
  const auto lines = lines_of(output(app::run_predict, {"--data", "test", "--json"}));
  ASSERT_EQ(lines.size(), kSamples);
  const Json json = Json::parse(lines.front());
  ASSERT_EQ(json["labels"].size(), 2);
  EXPECT_EQ(json["labels"][1]["class"], "at least 2");
}

TEST_F(OwnTask, NamesAPredictionThatDoesNotSuitItsData) {
  train::Task task = ordinal_task();
  task.prediction = {Form::kNextToken};
  train(task);
  EXPECT_EQ(error({"--data", "test"}),
            "the prediction of task 'ordinal' needs texts, and these data are numbers; give the "
            "task the prediction of these data");
}

TEST_F(OwnTask, HasNoRowsForPredictionsWithoutColumns) {
  train::Task task = ordinal_task();
  task.prediction = {Form::kClassPerElement};
  train(task);
  const std::string message = error({"--data", "test", "--output", (folder() / "r.csv").string()});
  EXPECT_NE(message.find("--output writes a class, labels or numbers"), std::string::npos)
      << message;
  EXPECT_FALSE(fs::exists(folder() / "r.csv"));
}

}  // namespace
}  // namespace gallop
