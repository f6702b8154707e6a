#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "gallop/track/log.h"

namespace gallop::track {

/// One value of a metric. Metrics of evaluations have the plain names of their values ("accuracy");
/// others are prefixed with their record kind ("train.loss").
struct Point {
  std::string metric{};
  int64_t step = 0;
  double time = 0;  ///< Seconds since 1970.
  double value = 0;
};

/// The metric name of a value in a record of this kind.
std::string metric_name(const std::string& kind, const std::string& value);

/// Whether a value of a record is a point. Position and best-so-far values of training records are
/// not.
bool is_point(const std::string& kind, const std::string& value);

/// Visits the points of one record.
void for_each_point(const Record& record, const std::function<void(const Point&)>& visit);

/// Visits all points of a run in the order in which they were written, without superseded ones.
void for_each_point(const Log& log, const std::function<void(const Point&)>& visit);

}  // namespace gallop::track
