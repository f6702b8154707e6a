#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gallop/advise/advice.h"
#include "gallop/advise/facts.h"
#include "gallop/app/session.h"
#include "gallop/compile/graph_listing.h"
#include "gallop/profile/profile.h"

// What a profile is made of besides its trace: the graphs of the steps, their memory, the machine
// and the settings of the training.
namespace gallop::app {

profile::GraphNode node_of(const compile::ListedNode& listed);
profile::Graphs graphs_of(const std::map<int64_t, compile::GraphListing>& listings);

/// Of the graph with the highest peak, if there is one, and of the process so far.
profile::StepMemory memory_of(Session& session,
                              const std::map<int64_t, compile::GraphListing>& listings);

/// Measures the CPU for about half a second, with all compute threads.
profile::MachinePeaks measure_peaks();

/// Whether steps with these graphs have convolutions over images.
bool has_convolutions(const Session& session, const profile::Graphs& graphs);

/// The settings of the training, and the machine.
advise::Facts facts_of(Session& session, const profile::Graphs& graphs);

/// The profile as JSON, with the training and advice: what 'gallop profile --json' prints and a run
/// stores.
std::string profile_document(const Session& session, const advise::Facts& facts,
                             const std::vector<advise::Advice>& advice);

/// Throws UsageError unless the training runs on a CPU.
void require_profiled_device(const Session& session, const char* what);

}  // namespace gallop::app
