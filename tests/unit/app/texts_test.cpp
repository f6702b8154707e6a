#include <algorithm>
#include <memory>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/app/distributed_context.h"
#include "gallop/app/signals.h"
#include "gallop/app/start_run.h"
#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/data/token_rows.h"
#include "gallop/data/tokenizer.h"
#include "gallop/gallop.h"

// Data modules registered by a program, with texts of one length or of any length.
namespace gallop {
namespace {

constexpr int64_t kLength = 6, kTokens = 5;

/// Texts of tokens 1 and 2, or of 3 and 4.
class Texts final : public data::Samples {
 public:
  explicit Texts(bool is_ragged)
      : Samples({is_ragged ? data::ragged_tokens("tokens", data::FieldRole::kInput, kLength,
                                                 data::kPaddingToken)
                           : data::Field{.name = "tokens",
                                         .role = data::FieldRole::kInput,
                                         .shape = {.sizes = {kLength}, .dtype = at::kLong}},
                 {.name = "label", .shape = {.sizes = {}, .dtype = at::kLong}}}),
        is_ragged_(is_ragged) {}

  int64_t size() const override { return 64; }
  bool every_target_counts() const override { return true; }
  bool fill(int64_t index, int64_t, const data::SampleRow& row, data::Scratch&) const override {
    const int64_t label = index % 2, length = is_ragged_ ? 1 + index % kLength : kLength;
    for (int64_t i = 0; i < length; ++i) row.as<int64_t>(0)[i] = 1 + 2 * label + (index >> i) % 2;
    if (is_ragged_) row.set_length(0, length);
    *row.as<int64_t>(1) = label;
    return true;
  }

 private:
  bool is_ragged_;
};

struct TextsConfig {
  bool ragged = false;
  std::string unit = "words";
};

void visit(config::Visitor& visitor, TextsConfig& config) {
  visitor.field({.name = "ragged", .help = "texts of any length"}, config.ragged);
  visitor.field({.name = "unit", .help = "what a token is"}, config.unit);
}

std::unique_ptr<data::DataModule> open_texts(const TextsConfig& config, const data::DataContext&) {
  auto module = std::make_unique<data::DataModule>();
  module->signature = {.kind = "text",
                       .task = "text-classification",
                       .context = kLength,
                       .unit = config.unit,
                       .separate_texts = true,
                       .classes = {"low", "high"}};
  for (int64_t i = 0; i < kTokens; ++i) {
    module->signature.vocabulary.push_back(data::to_hex(fmt::format("word{}", i)));
  }
  module->train = std::make_unique<Texts>(config.ragged);
  module->test = std::make_unique<Texts>(config.ragged);
  return module;
}

class OwnTexts : public testing::Test {
 protected:
  ~OwnTexts() override { at::set_num_threads(threads_); }

  train::Outcome train(const std::string& data, const std::string& layers) {
    Registries registries;
    registries.data_modules.add("own-texts", "for the test", open_texts);
    const fs::path recipe = folder_.path() / "recipe.yaml";
    write_file_atomically(
        recipe,
        fmt::format("data: {{name: own-texts, batch_size: 16{}}}\n"
                    "model: {{name: layers, layers: [{}]}}\n"
                    "optimizer: {{name: adamw, lr: 0.05}}\n"
                    "train: {{epochs: 10, threads: 1, precision: fp32, compile: 'false'}}\n",
                    data, layers));
    StopRequest stop;
    app::SignalGuard signals(stop, app::SignalGuard::Says::kStopping,
                             app::SignalGuard::Scope::kCall);
    const app::DistributedContext context = app::DistributedContext::join();
    const app::RunOptions options{
        .runs = folder_.path().string(), .name = "run", .can_probe = false};
    const auto run = app::start_run(registries, options, recipe.string(), {}, stop, context);
    return run->train(app::ConsoleStyle::kQuiet, signals);
  }
  std::string mistake(const std::string& data, const std::string& layers) {
    try {
      train(data, layers);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  }

 private:
  const int threads_ = at::get_num_threads();
  const TemporaryFolder folder_{fs::temp_directory_path(), "gallop-texts-test-"};
};

TEST_F(OwnTexts, OfOneLengthTakeLayersThatMixTokens) {
  const train::Outcome outcome =
      train("", "{embedding: 6}, batch-norm, {conv: {channels: 8, stride: 2}}, flatten, linear");
  EXPECT_TRUE(outcome.finished);
  ASSERT_TRUE(outcome.last);
  EXPECT_EQ(outcome.last->evaluation.tally.accuracy(), 1);
}

TEST_F(OwnTexts, OfAnyLengthTakeLayersThatIgnorePadding) {
  const train::Outcome outcome = train(", ragged: true", "{embedding: 6}, global-avg-pool, linear");
  ASSERT_TRUE(outcome.last);
  EXPECT_EQ(outcome.last->evaluation.tally.accuracy(), 1);
}

TEST_F(OwnTexts, OfAnyLengthRefuseLayersThatMixTokens) {
  EXPECT_NE(mistake(", ragged: true", "{embedding: 6}, flatten, linear").find("padding behind"),
            std::string::npos);
}

TEST_F(OwnTexts, DeclareWhatATokenIs) {
  const std::string wrong = mistake(", unit: ''", "{embedding: 6}, flatten, linear");
  EXPECT_NE(wrong.find("its signature declares no unit"), std::string::npos) << wrong;
}

}  // namespace
}  // namespace gallop
