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

/// The points of one metric of a run in the order of their steps, without those that were gone back
/// behind.
struct MetricPoints {
  std::vector<int64_t> steps;
  std::vector<double> times;  ///< Seconds since 1970.
  std::vector<double> values;
};

track::MetricSummary summary_of(const MetricPoints& points);

/// What a run's log says, kept in memory and brought up to date with what is appended to it.
class RunHistory {
 public:
  explicit RunHistory(fs::path log);

  /// Reads what is new. Throws DataError where the log cannot be read.
  void update();

  /// By the names of points (track/points.h).
  const std::map<std::string, MetricPoints>& metrics() const { return metrics_; }
  /// When its first point was written; 0 where there is none.
  double begin() const { return begin_; }
  int64_t points() const { return points_; }
  track::Energy energy() const { return energy_.energy(); }
  /// The records that tell of an end.
  const std::vector<track::Record>& ends() const { return ends_; }

  /// So many records of a kind (empty: of all), from number `offset` on in the order in which they
  /// were written. They are read from the file. Throws DataError where that is another one now.
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
  std::map<std::string, std::vector<uint32_t>> kinds_;  ///< Numbers of records.
};

}  // namespace gallop::ui
