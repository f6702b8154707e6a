#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/track/footprint.h"
#include "gallop/track/log_follower.h"
#include "gallop/track/points.h"
#include "gallop/track/run_summary.h"

namespace gallop::ui {

/// The points of one metric of a run, ordered by step, without those superseded by a rewind.
struct MetricPoints {
  std::vector<int64_t> steps;
  std::vector<double> times;  ///< Seconds since 1970.
  std::vector<double> values;
};

track::MetricSummary summary_of(const MetricPoints& points);

/// The parsed log of a run, updated incrementally.
class RunHistory {
 public:
  explicit RunHistory(fs::path log);

  /// Reads new records. Throws DataError if the log cannot be read.
  void update();

  /// By point name (track/points.h).
  const std::map<std::string, MetricPoints>& metrics() const { return metrics_; }
  /// The time of the first point; 0 if there is none.
  double begin() const { return begin_; }
  int64_t points() const { return points_; }
  track::Energy energy() const { return energy_.energy(); }
  /// The records of the kind "end".
  const std::vector<track::Record>& ends() const { return ends_; }

  /// At most `limit` records of a kind (empty: all kinds) from index `offset` on, in the order in
  /// which they were written. Reads them from the file; throws DataError if that was replaced.
  std::vector<track::Record> records(const std::string& kind, size_t offset, size_t limit) const;
  size_t count(const std::string& kind) const;
  std::vector<std::string> kinds() const;

 private:
  struct Place {
    int64_t offset = 0, step = 0;
    bool is_superseded = false;
  };

  void clear();
  void add(track::Record record, int64_t offset);
  void go_back_to(int64_t step);
  void add_point(const track::Point& point);

  fs::path log_;
  track::LogFollower follower_;
  std::map<std::string, MetricPoints> metrics_;
  double begin_ = 0;
  int64_t points_ = 0;
  track::EnergySum energy_;
  std::vector<track::Record> ends_;
  std::vector<Place> places_;
  std::map<std::string, std::vector<uint32_t>> kinds_;  ///< Indices of records, by kind.
};

}  // namespace gallop::ui
