#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/schedule/schedule.h"

// Schedules composed of other schedules.
namespace gallop::schedule {

/// The product of its members, each over the whole run.
struct ChainedConfig {
  explicit ChainedConfig(const config::Catalog& catalog) : members(catalog) {}
  config::ComponentList members;
};

/// Its members one after the other, switching at milestones. Fractions, epochs and steps of a
/// member are relative to its own part of the run, which ends at the next milestone.
struct SequenceConfig {
  explicit SequenceConfig(const config::Catalog& catalog) : members(catalog) {}
  config::ComponentList members;
  std::vector<std::string> milestones;
};

void visit(config::Visitor& visitor, ChainedConfig& config);
void visit(config::Visitor& visitor, SequenceConfig& config);

/// Both throw UsageError without members; a sequence also unless there is one milestone fewer than
/// members and they ascend within the run, a chain if several members set a momentum.
std::unique_ptr<Schedule> make_chained(const ChainedConfig& config, const RunLength& length);
std::unique_ptr<Schedule> make_sequence(const SequenceConfig& config, const RunLength& length);

}  // namespace gallop::schedule
