#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "gallop/track/log.h"

namespace gallop::track {

/// One value of a metric. Metrics of evaluations have the names of their values ("accuracy"), those
/// of steps and others stand behind their kind ("train.loss").
struct Point {
  std::string metric{};
  int64_t step = 0;
  double time = 0;  ///< Seconds since 1970.
  double value = 0;
};

/// What the value of a record of some kind is called.
std::string metric_name(const std::string& kind, const std::string& value);

/// Whether the value of a record of some kind is a point. Those that say where in the run a record
/// of training was written, and whether it was the best, are none.
bool is_point(const std::string& kind, const std::string& value);

/// Those of one record.
void for_each_point(const Record& record, const std::function<void(const Point&)>& visit);

/// Every point of a run, in the order in which they were written; none of what was gone back
/// behind.
void for_each_point(const Log& log, const std::function<void(const Point&)>& visit);

}  // namespace gallop::track
