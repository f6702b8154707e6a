#include "gallop/data/skip_summary.h"

namespace gallop::data {

std::string skip_summary(const SkipPolicy& skips) {
  std::string text;
  for (const SkipCount& one : skips.counts()) text += "; " + describe(one);
  return text;
}

}  // namespace gallop::data
