#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/schedule/schedule.h"

// Schedules made of others.
namespace gallop::schedule {

/// The product of the members, each over the whole run.
struct ChainedConfig {
  explicit ChainedConfig(const config::Catalog& catalog) : members(catalog) {}
  config::ComponentList members;
};

/// One member after the other, each from one milestone to the next. The run of a member is its own
/// part: its shares, epochs and steps count from its milestone, and its end is the next one.
struct SequenceConfig {
  explicit SequenceConfig(const config::Catalog& catalog) : members(catalog) {}
  config::ComponentList members;
  std::vector<std::string> milestones;
};

void visit(config::Visitor& visitor, ChainedConfig& config);
void visit(config::Visitor& visitor, SequenceConfig& config);

/// Throw UsageError without members; a sequence also where milestones are not one fewer or do not
/// rise within the run, a chain where several members have a momentum.
std::unique_ptr<Schedule> make_chained(const ChainedConfig& config, const RunLength& length);
std::unique_ptr<Schedule> make_sequence(const SequenceConfig& config, const RunLength& length);

}  // namespace gallop::schedule
