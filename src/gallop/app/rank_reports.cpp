#include "gallop/app/rank_reports.h"

#include <algorithm>
#include <utility>

#include "gallop/data/gzip.h"
#include "gallop/parallel/collectives.h"
#include "gallop/parallel/value_bytes.h"
#include "gallop/profile/rank_times.h"

namespace gallop::app {

namespace {

using Texts = parallel::ValueBytes<std::vector<std::string>>;

// About 20 MB of JSON, which a browser still parses in a second.
constexpr size_t kMostSpans = 100'000;

}  // namespace

profile::TraceOrigin origin_of(const DistributedContext& context, const std::string& host) {
  return {.rank = context.rank(),
          .processes = context.size(),
          .backend = context.is_alone() ? "" : "gloo",
          .host = host};
}

RankReport report_of(const DistributedContext& context, const std::string& host, Trace trace,
                     const profile::Graphs& graphs, const profile::Profile& profile) {
  RankReport report{.time = profile::rank_time_of(trace, profile), .trace = {}};
  report.time.rank = context.rank();
  report.time.host = host;
  const Trace limited = profile::last_steps(std::move(trace), kMostSpans);
  report.trace =
      data::gzip(profile::chrome_trace(limited, graphs, profile.memory, origin_of(context, host)));
  return report;
}

std::vector<RankReport> gather_reports(const DistributedContext& context, RankReport own,
                                       int64_t step) {
  std::vector<RankReport> all;
  if (context.is_alone()) {
    all.push_back(std::move(own));
    return all;
  }
  context.collectives()->begin(parallel::Section::kCheckpoint, step);
  const std::string bytes = Texts::write({profile::to_text(own.time), own.trace});
  std::vector<profile::RankTime> times;
  for (const std::string& other : parallel::gather_bytes(*context.collectives(), bytes)) {
    std::vector<std::string> texts = Texts::read(other);
    all.push_back({.time = profile::rank_time_from(texts.at(0)), .trace = std::move(texts.at(1))});
    times.push_back(all.back().time);
  }
  profile::compare_ranks(times);
  for (size_t i = 0; i < all.size(); ++i) all[i].time = times[i];
  return all;
}

std::vector<profile::RankTime> times_of(const std::vector<RankReport>& reports) {
  std::vector<profile::RankTime> times;
  if (reports.size() < 2) return times;
  for (const RankReport& report : reports) times.push_back(report.time);
  return times;
}

}  // namespace gallop::app
