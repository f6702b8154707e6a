#include "gallop/track/prometheus.h"

#include <vector>

#include "gallop/base/clock.h"
#include "gallop/ui/api/api.h"

namespace gallop::ui::api {

namespace {

// Ended runs stay this long, so that their end is scraped.
constexpr double kEndedSeconds = 600;

}  // namespace

http::Response prometheus(Context& context, const http::Request& /*request*/) {
  std::vector<track::RunSummary> runs;
  context.runs.with_index([&](const track::RunIndex& index) {
    const double since = seconds_since_1970() - kEndedSeconds;
    for (const track::RunRow& row : index.rows()) {
      const bool is_trained = row.state == track::RunState::kTraining;
      if (is_trained || row.created + row.seconds > since) runs.push_back(index.summary(row.name));
    }
  });
  return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = track::prometheus_text(runs)};
}

}  // namespace gallop::ui::api
