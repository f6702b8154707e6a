#include "gallop/profile/rank_times.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "gallop/base/error.h"

namespace gallop::profile {

namespace {

using Json = nlohmann::ordered_json;
using Interval = std::pair<int64_t, int64_t>;  // Nanoseconds.

constexpr std::array<std::string_view, 7> kComputes = {
    "batch transforms", "forward", "loss", "backward", "recomputation", "optimizer", "other"};
// Shorter differences between waits tell nothing.
constexpr double kLeastWait = 50e-6;

double seconds_of(int64_t ns) { return 1e-9 * static_cast<double>(ns); }

// Without overlaps, in increasing order.
std::vector<Interval> merged(std::vector<Interval> all) {
  std::sort(all.begin(), all.end());
  std::vector<Interval> merged;
  for (const Interval& one : all) {
    if (merged.empty() || merged.back().second < one.first) {
      merged.push_back(one);
    } else {
      merged.back().second = std::max(merged.back().second, one.second);
    }
  }
  return merged;
}

int64_t length_of(const std::vector<Interval>& intervals) {
  int64_t length = 0;
  for (const auto& [begin, end] : intervals) length += end - begin;
  return length;
}

int64_t common_length(const std::vector<Interval>& some, const std::vector<Interval>& others) {
  int64_t length = 0;
  for (auto one = some.begin(), other = others.begin();
       one != some.end() && other != others.end();) {
    length += std::max<int64_t>(
        0, std::min(one->second, other->second) - std::max(one->first, other->first));
    (one->second < other->second ? one : other) += 1;
  }
  return length;
}

std::vector<Interval> of_kind(const ThreadTrace& thread, SpanKind kind) {
  std::vector<Interval> all;
  for (const TraceEvent& event : thread.events) {
    if (event.kind == kind) all.emplace_back(event.begin_ns, event.end_ns);
  }
  return all;
}

void find_last_into_collectives(std::vector<RankTime>& ranks) {
  size_t common = ranks.front().waits.size();
  for (const RankTime& one : ranks) common = std::min(common, one.waits.size());
  std::vector<int64_t> last(ranks.size());
  int64_t counted = 0;
  for (size_t i = 0; i < common; ++i) {
    const auto [least, most] =
        std::minmax_element(ranks.begin(), ranks.end(),
                            [&](const auto& a, const auto& b) { return a.waits[i] < b.waits[i]; });
    if (most->waits[i] - least->waits[i] < kLeastWait) continue;
    counted += 1;
    last[static_cast<size_t>(least - ranks.begin())] += 1;
  }
  for (size_t i = 0; i < ranks.size() && counted > 0; ++i) {
    ranks[i].last_into_collectives = static_cast<double>(last[i]) / static_cast<double>(counted);
  }
}

}  // namespace

RankTime rank_time_of(const Trace& trace, const Profile& profile) {
  RankTime time{.seconds = profile.seconds, .begin_ns = trace.begin_ns};
  for (const PhaseTime& phase : profile.phases) {
    const bool computes =
        std::find(kComputes.begin(), kComputes.end(), phase.name) != kComputes.end();
    if (computes) time.compute += phase.seconds;
    if (phase.name == "data wait") time.data_wait = phase.seconds;
    if (phase.name == "communication") time.exposed_communication = phase.seconds;
  }
  std::vector<Interval> waits, background;
  for (const ThreadTrace& thread : trace.threads) {
    const std::vector<Interval> all = of_kind(thread, SpanKind::kCommunication);
    (thread.main ? waits : background)
        .insert((thread.main ? waits : background).end(), all.begin(), all.end());
  }
  std::sort(waits.begin(), waits.end());
  for (const auto& [begin, end] : waits) time.waits.push_back(seconds_of(end - begin));
  if (!waits.empty()) time.first_wait_end = seconds_of(waits.front().second - trace.begin_ns);
  const std::vector<Interval> runs = merged(std::move(background));
  const int64_t overlapped = length_of(runs) - common_length(runs, merged(std::move(waits)));
  time.overlapped_communication = seconds_of(overlapped) / static_cast<double>(profile.steps);
  return time;
}

std::string to_text(const RankTime& time) {
  return Json{{"rank", time.rank},
              {"host", time.host},
              {"seconds", time.seconds},
              {"compute", time.compute},
              {"data_wait", time.data_wait},
              {"exposed", time.exposed_communication},
              {"overlapped", time.overlapped_communication},
              {"waits", time.waits},
              {"begin_ns", time.begin_ns},
              {"first_wait_end", time.first_wait_end}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

RankTime rank_time_from(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    RankTime time{.rank = json.at("rank"), .host = json.at("host")};
    time.seconds = json.at("seconds");
    time.compute = json.at("compute");
    time.data_wait = json.at("data_wait");
    time.exposed_communication = json.at("exposed");
    time.overlapped_communication = json.at("overlapped");
    json.at("waits").get_to(time.waits);
    time.begin_ns = json.at("begin_ns");
    time.first_wait_end = json.at("first_wait_end");
    return time;
  } catch (const Json::exception&) {
    throw DataError("the times of another process cannot be read");
  }
}

void compare_ranks(std::vector<RankTime>& ranks) {
  if (ranks.empty()) return;
  find_last_into_collectives(ranks);
  const RankTime& first = ranks.front();
  for (RankTime& one : ranks) {
    one.offset = one.host == first.host ? seconds_of(one.begin_ns - first.begin_ns)
                                        : first.first_wait_end - one.first_wait_end;
  }
}

double rank_skew(const std::vector<RankTime>& ranks) {
  if (ranks.size() < 2) return 0;
  double sum = 0;
  for (const RankTime& one : ranks) sum += one.compute;
  const auto [least, most] = std::minmax_element(
      ranks.begin(), ranks.end(),
      [](const RankTime& a, const RankTime& b) { return a.compute < b.compute; });
  const double mean = sum / static_cast<double>(ranks.size());
  return mean > 0 ? (most->compute - least->compute) / mean : 0;
}

}  // namespace gallop::profile
