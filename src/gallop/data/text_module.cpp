#include "gallop/data/text_module.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/data_config.h"
#include "gallop/data/masked_text.h"
#include "gallop/data/report.h"
#include "gallop/data/split.h"
#include "gallop/data/text_samples.h"

namespace gallop::data {

namespace {

/// A text and the samples that read it.
class TextModule final : public DataModule {
 public:
  TextModule(std::unique_ptr<TextParts> parts, const std::string& unit, const DataContext& context)
      : parts_(std::move(parts)) {
    const DataConfig& config = context.config;
    const Holdout holdout = holdout_of(config, context.options.seed);
    held_out = holds_out(holdout, parts_->validation != nullptr);
    if (held_out) cut_text(*parts_, holdout);
    files = parts_->files;
    notes = parts_->notes;
    signature.kind = "text";
    signature.task = choose_task(config, {"causal-lm", "masked-lm"});
    signature.context = config.context;
    signature.unit = unit;
    for (const std::string& token : parts_->train->vocabulary) {
      signature.vocabulary.push_back(to_hex(token));
    }
    if (is_masked()) {
      if (config.eval_stride != 0) {
        notes.push_back(fmt::format(
            "data.eval_stride is {}, and has no effect on masked-lm, which predicts from both "
            "sides; set it to 0",
            config.eval_stride));
      }
      signature.mask_token = to_hex(kMaskToken);
      signature.vocabulary.push_back(signature.mask_token);
    }
    if (!context.builds_samples) return;
    train = training_samples(config, context.options.seed);
    validation = evaluation_samples(parts_->validation.get(), config);
    test = evaluation_samples(parts_->test.get(), config);
  }
  ~TextModule() override { release_samples(); }  // Before the text that they read.

  DataReport inspect(int /*threads*/) const override { return data::inspect(*parts_); }

 private:
  bool is_masked() const { return signature.task == "masked-lm"; }

  std::unique_ptr<Samples> training_samples(const DataConfig& config, uint64_t seed) const {
    auto windows = std::make_unique<TextWindows>(*parts_->train, config.context, seed);
    if (!is_masked()) return windows;
    return std::make_unique<MaskedText>(std::move(windows), masking(), seed);
  }

  std::unique_ptr<Samples> evaluation_samples(const TextSet* text, const DataConfig& config) const {
    if (text == nullptr) return nullptr;
    if (!is_masked()) {
      return std::make_unique<TextEvaluation>(*text, config.context, config.eval_stride);
    }
    // Without overlap, and with the same masks in every evaluation.
    auto windows = std::make_unique<TextEvaluation>(*text, config.context, 0);
    return std::make_unique<MaskedText>(std::move(windows), masking(), /*seed=*/0);
  }

  Masking masking() const {
    const auto tokens = static_cast<int64_t>(parts_->train->vocabulary.size());
    return {.vocabulary = tokens, .mask_token = tokens};
  }

  std::unique_ptr<TextParts> parts_;
};

}  // namespace

std::unique_ptr<DataModule> make_text_module(std::unique_ptr<TextParts> parts,
                                             const std::string& unit, const DataContext& context) {
  if (!context.config.augment.items.empty()) {
    throw UsageError("data.augment is for images, and this data set is text");
  }
  return std::make_unique<TextModule>(std::move(parts), unit, context);
}

}  // namespace gallop::data
