#include "gallop/data/quality/duplicate_findings.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop::data {

namespace {

struct Described {
  std::vector<FoundSample> samples;
  bool is_exact = true;

  Part last_part() const {
    Part last = Part::kTrain;
    for (const FoundSample& one : samples) last = std::max(last, one.part);
    return last;
  }
  bool has_several_labels() const {
    return std::any_of(samples.begin(), samples.end(),
                       [&](const FoundSample& one) { return one.label != samples[0].label; });
  }
};

std::string exactness(int64_t exact, int64_t all) {
  if (exact == all) return "the same content";
  return exact == 0
             ? "nearly the same content"
             : fmt::format("the same content in {} of {} groups and nearly the same in the others",
                           format_count(exact), format_count(all));
}

// Collects the groups of one finding.
class Collected {
 public:
  Collected(std::string kind, std::string title) {
    finding_.kind = std::move(kind);
    finding_.title = std::move(title);
  }

  template <typename IsExcluded>
  void add(const Described& group, const IsExcluded& is_excluded) {
    for (size_t i = 0; i < group.samples.size(); ++i) {
      const FoundSample& sample = group.samples[i];
      ++counts_[static_cast<size_t>(sample.part)];
      if (is_excluded(i, sample)) finding_.excluded.push_back(sample.name);
    }
    exact_ += group.is_exact ? 1 : 0;
    finding_.groups.push_back(group.samples);
  }

  // `describe(samples, exactness)`: the finding's text.
  template <typename Describe>
  void finish(DataQuality& quality, const Describe& describe) {
    if (finding_.groups.empty()) return;
    const auto groups = static_cast<int64_t>(finding_.groups.size());
    finding_.text = describe(counts_, groups, exactness(exact_, groups));
    quality.findings.push_back(std::move(finding_));
  }

 private:
  QualityFinding finding_;
  std::array<int64_t, kParts> counts_{};
  int64_t exact_ = 0;
};

}  // namespace

void add_duplicates(const std::vector<DuplicateGroup>& groups,
                    const std::function<FoundSample(int64_t)>& sample, DataQuality& quality) {
  Collected leakage("leakage", "Leakage"), conflicts("conflicting-labels", "Conflicting labels");
  Collected exact("exact-duplicates", "Exact duplicates");
  Collected near("near-duplicates", "Near-duplicates");
  for (const DuplicateGroup& group : groups) {
    Described described{.is_exact = group.is_exact};
    for (const int64_t member : group.members) {
      described.samples.push_back(sample(member));
      const auto& mirrored = group.mirrored;
      if (std::binary_search(mirrored.begin(), mirrored.end(), member)) {
        described.samples.back().value = "mirrored";
      }
    }
    // Which of the labels is right is unknown.
    if (described.has_several_labels()) {
      conflicts.add(described, [](size_t, const FoundSample&) { return true; });
    }
    if (group.is_across) {
      // The test split stays as it is, so that results can be compared.
      const Part last = described.last_part();
      leakage.add(described, [&](size_t, const FoundSample& one) { return one.part != last; });
    } else {
      (group.is_exact ? exact : near).add(described, [](size_t i, const FoundSample&) {
        return i > 0;
      });
    }
  }
  using Counts = std::array<int64_t, kParts>;
  const std::string& unit = quality.unit;
  leakage.finish(quality, [&](const Counts& counts, int64_t, const std::string& same) {
    std::vector<std::string> texts;
    for (size_t i = kParts; i-- > 0;) {
      if (counts[i] == 0) continue;
      texts.push_back(fmt::format("{} of the {} split", counted(counts[i], unit), kPartNames[i]));
    }
    return fmt::format("{} have {}", join_names(texts, "and"), same);
  });
  const auto total = [](const Counts& counts) { return counts[0] + counts[1] + counts[2]; };
  conflicts.finish(quality, [&](const Counts& counts, int64_t number, const std::string& same) {
    return fmt::format("{} in {} have {}, but different labels", counted(total(counts), unit),
                       counted(number, "groups"), same);
  });
  const auto within = [&](const Counts& counts, int64_t number, const std::string& same) {
    return fmt::format("{} in {} have {}", counted(total(counts), unit), counted(number, "groups"),
                       same);
  };
  exact.finish(quality, within);
  near.finish(quality, within);
}

}  // namespace gallop::data
