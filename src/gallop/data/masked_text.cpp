#include "gallop/data/masked_text.h"

#include "gallop/base/philox.h"
#include "gallop/data/text_samples.h"

namespace gallop::data {

MaskedText::MaskedText(std::unique_ptr<Samples> windows, const Masking& masking, uint64_t seed)
    : Samples(windows->fields()), windows_(std::move(windows)), masking_(masking), seed_(seed) {}

bool MaskedText::fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const {
  if (!windows_->fill(index, epoch, row, scratch)) return false;
  auto* const tokens = row.as<int64_t>(0);
  auto* const labels = row.as<int64_t>(1);
  const int64_t context = fields()[0].shape.sizes.front();
  // The window's own labels are the next tokens, ignored only beyond the end of the text.
  int64_t length = context;
  while (length > 1 && labels[length - 1] == kIgnoredTarget) --length;
  Philox random(seed_, Purpose::kMask, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index));
  const auto vocabulary = static_cast<uint64_t>(masking_.vocabulary);
  const auto always = static_cast<int64_t>(random.below(static_cast<uint64_t>(length)));
  for (int64_t i = 0; i < context; ++i) {
    labels[i] = kIgnoredTarget;
    if (i >= length) continue;
    // Drawn for every position, so that the choices at different positions are independent.
    const double choice = random.uniform(), how = random.uniform();
    const auto other = static_cast<int64_t>(random.below(vocabulary));
    if (choice >= masking_.chosen && i != always) continue;
    labels[i] = tokens[i];
    if (how < masking_.masked) {
      tokens[i] = masking_.mask_token;
    } else if (how < masking_.masked + masking_.replaced) {
      tokens[i] = other;
    }
  }
  return true;
}

}  // namespace gallop::data
