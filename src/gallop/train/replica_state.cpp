#include "gallop/train/replica_state.h"

#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/train/progress.h"

namespace gallop::train {

namespace {

// Entries of TrainingState::trainer.
constexpr const char *kReplicas = "replicas", *kEqual = "replicas.equal",
                     *kOuter = "replicas.outer";

std::string yes_or_no(bool value) { return value ? "true" : "false"; }

NamedTensors named(const std::string& prefix, const NamedTensors& tensors) {
  NamedTensors all;
  for (const auto& [name, tensor] : tensors) all.push_back({prefix + name, tensor});
  return all;
}

NamedTensors in_model(const NamedTensors& tensors) { return named("replica.model.", tensors); }
NamedTensors in_optimizer(const NamedTensors& tensors) {
  return named("replica.optimizer.", tensors);
}
NamedTensors in_outer(const NamedTensors& tensors) { return named("replica.outer.", tensors); }

void append(NamedTensors& to, const NamedTensors& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// The saved tensors by name.
class Saved {
 public:
  explicit Saved(const NamedTensors& own) {
    for (const auto& [name, tensor] : own) tensors_[name] = tensor;
  }
  const at::Tensor& of(int rank, const NamedTensor& like) const {
    const auto found = tensors_.find(rank_state_name(rank, like.name));
    if (found == tensors_.end() || found->second.sizes() != like.tensor.sizes()) {
      throw UsageError(
          fmt::format("the checkpoint has no {} of the replica of rank {} that fits this run; "
                      "continue with the options of section 'parallel' that it was saved with",
                      like.name, rank));
    }
    return found->second;
  }

 private:
  std::map<std::string, at::Tensor> tensors_;
};

int read_count(const std::map<std::string, std::string>& trainer) {
  return trainer.contains(kReplicas) ? static_cast<int>(read_integer(trainer, kReplicas)) : 0;
}

bool read_flag(const std::map<std::string, std::string>& trainer, const char* name) {
  const auto found = trainer.find(name);
  if (found == trainer.end()) throw DataError(fmt::format("the checkpoint has no '{}'", name));
  return found->second == "true";
}

}  // namespace

void write_replica(const ProcessGroup& group, const NamedTensors& optimizer, TrainingState& into) {
  const parallel::ModelAverager* const averager = group.averager();
  if (averager == nullptr || !averager->has_trained_locally()) return;
  into.trainer[kReplicas] = std::to_string(group.size());
  into.trainer[kEqual] = yes_or_no(averager->are_equal());
  into.trainer[kOuter] = yes_or_no(averager->has_outer_state());
  NamedTensors own;
  if (!averager->are_equal()) append(own, in_model(averager->replica()));
  // That of rank 0 is the optimizer's state of the checkpoint.
  if (!group.is_first()) append(own, in_optimizer(optimizer));
  if (group.is_first() && averager->has_outer_state()) {
    append(own, in_outer(averager->outer_state()));
  }
  for (const auto& [name, tensor] : own) {
    into.own.push_back({rank_state_name(group.rank(), name), tensor});
  }
}

bool has_replicas(const TrainingState& state) { return state.trainer.contains(kReplicas); }

bool has_own_states(const TrainingState& state) {
  return !state.own.empty() || has_replicas(state);
}

void forget_replicas(std::map<std::string, std::string>& trainer) {
  for (const char* name : {kReplicas, kEqual, kOuter}) trainer.erase(name);
}

std::string read_replicas(const ProcessGroup& group, const NamedTensors& optimizer,
                          const TrainingState& saved, int64_t step) {
  parallel::ModelAverager* const averager = group.averager();
  const int count = read_count(saved.trainer), size = group.size();
  if (averager != nullptr) averager->restart();
  if (count == 0) return {};
  const bool are_equal = read_flag(saved.trainer, kEqual);
  bool has_outer = read_flag(saved.trainer, kOuter);
  const bool wants_outer = averager != nullptr && !averager->outer_state().empty();
  if (!are_equal && (averager == nullptr || size != count || wants_outer != has_outer)) {
    throw UsageError(fmt::format(
        "the checkpoint of step {} lies between two synchronizations of {} replicas, whose weights "
        "differ: continue with {} processes and the strategy that saved it, save one at a "
        "synchronization (train.checkpoint_every), or begin another run with their mean by --from",
        step, count, count));
  }
  const std::string others =
      count == size && averager != nullptr
          ? ""
          : fmt::format("the checkpoint has the optimizer states of {} replicas; {}", count,
                        averager == nullptr
                            ? "the first of them continues"
                            : fmt::format("each of {} processes takes one of them", size));
  if (averager == nullptr) return others;
  if (step < averager->schedule().warmup_steps) {
    throw UsageError(
        fmt::format("parallel.warmup_steps is {}, but the {} replicas of the checkpoint of step {} "
                    "have trained "
                    "apart already: set it to at most {}",
                    averager->schedule().warmup_steps, count, step, step));
  }
  has_outer = has_outer && wants_outer;
  const at::NoGradGuard no_grad;
  const Saved tensors(saved.own);
  const auto wanted_by = [&](int rank) {
    NamedTensors wanted;
    if (!are_equal) append(wanted, in_model(averager->replica()));
    if (rank % count > 0) append(wanted, in_optimizer(optimizer));
    return wanted;
  };
  const NamedTensors outer = has_outer ? in_outer(averager->outer_state()) : NamedTensors();
  group.run_on_rank0([&] {
    for (int rank = 0; rank < size; ++rank) {
      for (const NamedTensor& one : wanted_by(rank)) tensors.of(rank % count, one);
    }
    for (const NamedTensor& one : outer) tensors.of(0, one);
  });
  parallel::Collectives& collectives = *group.collectives();
  for (int rank = 0; rank < size; ++rank) {
    if (!group.is_first() && group.rank() != rank) continue;
    for (const NamedTensor& one : wanted_by(rank)) {
      if (rank == 0) {
        one.tensor.copy_(tensors.of(0, one));
        continue;
      }
      const at::Tensor sent =
          at::empty(one.tensor.sizes(), one.tensor.options().requires_grad(false));
      if (group.is_first()) {
        sent.copy_(tensors.of(rank % count, one));
        collectives.send_async(sent, rank);
      } else {
        collectives.recv_async(sent, 0);
      }
      collectives.wait(sent);
      if (!group.is_first()) one.tensor.copy_(sent);
    }
  }
  for (const NamedTensor& one : outer) {
    if (group.is_first()) one.tensor.copy_(tensors.of(0, one));
  }
  group.broadcast(outer);
  averager->restored(are_equal, has_outer);
  return others;
}

}  // namespace gallop::train
