#include "gallop/track/histogram.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::track {

namespace {

constexpr const char* kKind = "histogram";
constexpr const char* kName = "name";
constexpr const char* kLeast = "least";
constexpr const char* kMost = "most";
constexpr const char* kNotFinite = "not_finite";
constexpr size_t kNumbersBesideCounts = 3;

std::string count_name(size_t part) { return fmt::format("count.{:03}", part); }

}  // namespace

Record record_of(const Histogram& histogram) {
  Record record{.step = histogram.step,
                .kind = kKind,
                .values = {{kLeast, histogram.least},
                           {kMost, histogram.most},
                           {kNotFinite, static_cast<double>(histogram.not_finite)}},
                .texts = {{kName, histogram.name}}};
  for (size_t part = 0; part < histogram.counts.size(); ++part) {
    record.values[count_name(part)] = static_cast<double>(histogram.counts[part]);
  }
  return record;
}

Histogram histogram_of(const Record& record) {
  const auto number = [&record](const std::string& name) {
    const auto found = record.values.find(name);
    if (found == record.values.end()) {
      throw DataError(fmt::format("a histogram without '{}'", printable(name)));
    }
    return found->second;
  };
  const auto name = record.texts.find(kName);
  if (record.kind != kKind || name == record.texts.end()) throw DataError("no histogram");
  Histogram histogram;
  histogram.name = name->second;
  histogram.step = record.step;
  histogram.time = record.time;
  histogram.least = number(kLeast);
  histogram.most = number(kMost);
  histogram.not_finite = static_cast<int64_t>(number(kNotFinite));
  for (size_t part = 0; part + kNumbersBesideCounts < record.values.size(); ++part) {
    histogram.counts.push_back(static_cast<int64_t>(number(count_name(part))));
  }
  return histogram;
}

fs::path histograms_of(const fs::path& run) { return run / "histograms.log"; }

std::vector<Histogram> read_histograms(const fs::path& run) {
  std::vector<Histogram> histograms;
  if (!fs::exists(histograms_of(run))) return histograms;
  for (const Record& record : read_log(histograms_of(run)).current()) {
    if (record.kind == kKind) histograms.push_back(histogram_of(record));
  }
  return histograms;
}

}  // namespace gallop::track
