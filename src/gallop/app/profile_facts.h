#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gallop/advise/advice.h"
#include "gallop/advise/facts.h"
#include "gallop/app/session.h"
#include "gallop/app/step_recording.h"
#include "gallop/compile/graph_listing.h"
#include "gallop/compile/graph_stages.h"
#include "gallop/profile/profile.h"

// What a profile is made of besides its trace: the graphs of the steps, their memory, the machine
// and the settings of the training.
namespace gallop::app {

profile::GraphNode node_of(const compile::ListedNode& listed);
profile::Graphs graphs_of(const std::map<int64_t, compile::GraphListing>& listings);

/// Records a step of the session's training with its first batch, without an effect on it. Nodes
/// are not timed. All processes of a group call this together.
compile::GraphStages record_step(Session& session);

/// An eager step that was recorded.
struct RecordedEagerStep {
  std::vector<profile::GraphNode> nodes;
  std::string refusal;  ///< Why it cannot be recorded; empty if it can.
};

/// By record_step().
RecordedEagerStep record_eager_step(Session& session);

/// The profile of recorded steps, with their counts. Operators of eager steps become nodes of the
/// step `eager`, which is added to `graphs`; if some do not, the profile has the reason.
profile::Profile profile_of(RecordedSteps& recorded, profile::Graphs& graphs,
                            const std::optional<RecordedEagerStep>& eager,
                            const profile::MachinePeaks& peaks);

/// The memory of the graph with the highest peak, if there is one, and of the process so far.
profile::StepMemory memory_of(Session& session,
                              const std::map<int64_t, compile::GraphListing>& listings);

/// Measures the CPU for about half a second, with all compute threads.
profile::MachinePeaks measure_peaks();

/// The settings of the training, and the machine.
advise::Facts facts_of(Session& session);

/// Where the largest gradient comes in the backward pass of a step, which it computes. The session
/// cannot train afterwards; see train::gradient_order().
advise::GradientFacts gradient_facts_of(Session& session);

/// The profile as JSON, with the training and advice: what 'gallop profile --json' prints and a run
/// stores.
std::string profile_document(const Session& session, const advise::Facts& facts,
                             const std::vector<advise::Advice>& advice);

/// Throws UsageError unless the training runs on a CPU.
void require_profiled_device(const Session& session, const char* what);

}  // namespace gallop::app
