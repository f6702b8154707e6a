#pragma once

#include <cstdint>
#include <memory>

#include "gallop/data/samples.h"

namespace gallop::data {

/// The token that replaces masked tokens.
inline constexpr const char* kMaskToken = "[MASK]";

/// How tokens are masked, as in BERT (Devlin et al., "BERT: pre-training of deep bidirectional
/// transformers for language understanding", 2019).
struct Masking {
  int64_t vocabulary = 0;  ///< Number of tokens to draw random replacements from.
  int64_t mask_token = 0;  ///< Index of the mask token.
  double chosen = 0.15;    ///< Fraction of the tokens to predict.
  double masked = 0.8;     ///< Of these, the fraction replaced by the mask token.
  double replaced = 0.1;   ///< Of these, the fraction replaced by a random token.
};

/// Samples for a masked language model: "tokens" [context] int64, partly masked, and "labels",
/// the original tokens at the chosen positions and kIgnoredTarget elsewhere. At least one
/// position of every window is chosen. The choices are a function of (seed, epoch, sample,
/// position).
class MaskedText final : public Samples {
 public:
  /// `windows` have the fields "tokens" and "labels", the latter without those that pad.
  MaskedText(std::unique_ptr<Samples> windows, const Masking& masking, uint64_t seed);

  int64_t size() const override { return windows_->size(); }
  std::string describe(int64_t index) const override { return windows_->describe(index); }
  std::unique_ptr<Scratch> make_scratch() const override { return windows_->make_scratch(); }
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override;

 private:
  std::unique_ptr<Samples> windows_;
  Masking masking_;
  uint64_t seed_;
};

}  // namespace gallop::data
