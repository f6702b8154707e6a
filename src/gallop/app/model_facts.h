#pragma once

#include "gallop/advise/facts.h"
#include "gallop/app/session.h"
#include "gallop/compile/graph_listing.h"
#include "gallop/profile/profile.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::app {

/// The parameters that the recorded step of a model does not change, and the biases that are added
/// right before a batch norm. Both are empty if the step changes none of the parameters, as one
/// without an update.
advise::ModelFacts facts_of_graph(const compile::GraphListing& recorded,
                                  const NamedTensors& parameters);

/// Records a step of the session for facts_of_graph(), and times layers with large shares of the
/// profile whose sizes do not suit vectors, each alone, next to one with better sizes. No facts if
/// the step cannot be recorded. Leaves the weights as they are.
advise::ModelFacts find_model_facts(Session& session, const profile::Profile& profile);

}  // namespace gallop::app
