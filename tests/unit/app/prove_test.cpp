// 'gallop prove' and train.prove of a training whose compiled step differs from the eager one.
#include <csignal>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/app/command.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/start_run.h"
#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/gallop.h"
#include "gallop/tensor/recording.h"

namespace gallop {
namespace {

/// Cross-entropy that the step compiler records with another factor.
class RecordedOtherwise final : public train::Loss {
 public:
  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    const at::Tensor sum = own_->sum(output, batch);
    return is_recording() ? sum * 1.001 : sum;
  }
  at::Tensor count(const NamedTensors& batch) const override { return own_->count(batch); }
  train::LossTraits traits() const override { return own_->traits(); }

 private:
  std::shared_ptr<const train::Loss> own_ = train::cross_entropy_loss();
};

struct NoOptions {};
void visit(config::Visitor&, NoOptions&) {}
std::unique_ptr<train::Loss> make_loss(const NoOptions&, const train::LossContext&) {
  return std::make_unique<RecordedOtherwise>();
}

class ProveCommand : public testing::Test {
 protected:
  ProveCommand() {
    registries_.losses.add("recorded-otherwise", "for the test", make_loss);
    write_file_atomically(recipe_,
                          "data: {name: fake-images, shape: [1, 8, 8], classes: 3, samples: 64, "
                          "batch_size: 16, threads: 1}\n"
                          "model: {name: mlp, hidden: [16]}\n"
                          "optimizer: {name: sgd, lr: 0.05}\n"
                          "train: {steps: 2, threads: 1, precision: fp32, channels_last: false, "
                          "compile: 'true', loss: recorded-otherwise, prove: true}\n");
  }
  ~ProveCommand() override {
    at::set_num_threads(threads_);
    std::signal(SIGPIPE, SIG_DFL);  // A command ignores it until its process ends.
  }

  ExitCode prove(const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {recipe_.string(), "--steps", "2"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return app::run_prove(app::CommandContext(registries_), arguments);
  }

  const int threads_ = at::get_num_threads();
  const TemporaryFolder folder_{fs::temp_directory_path(), "gallop-prove-test-"};
  const fs::path recipe_ = folder_.path() / "recipe.yaml";
  Registries registries_;
};

TEST_F(ProveCommand, FailsForStepsThatDiffer) {
  testing::internal::CaptureStdout();
  const ExitCode code = prove({});
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, ExitCode::kInternal);
  EXPECT_NE(text.find("not proven: loss: the error is 0.001 in step "), std::string::npos) << text;
}

TEST_F(ProveCommand, SucceedsForEagerSteps) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(prove({"train.compile=false"}), ExitCode::kDone);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("proven: no error exceeds its bound"), std::string::npos) << text;
}

TEST_F(ProveCommand, EndsATrainingBeforeItBegins) {
  const StopRequest stop;
  const app::DistributedContext context = app::DistributedContext::join();
  const fs::path runs = folder_.path() / "runs";
  const app::RunOptions options{.runs = runs.string(), .name = "run", .can_probe = false};
  std::string message;
  try {
    app::start_run(registries_, options, recipe_.string(), {}, stop, context);
  } catch (const InternalError& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("train.prove: the first steps differ from the reference: loss: "),
            std::string::npos)
      << message;
  EXPECT_FALSE(fs::exists(runs / "run"));
}

}  // namespace
}  // namespace gallop
