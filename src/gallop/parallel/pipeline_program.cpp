#include "gallop/parallel/pipeline_program.h"

#include <span>

#include <fmt/format.h>

namespace gallop::parallel {

namespace {

// The stage that needs the result of a pass; -1: none.
int user_of(const PipelineSchedule& schedule, const PipelineAction& action) {
  switch (action.pass) {
    case PipelinePass::kForward:
      return action.stage + 1 < schedule.stages() ? action.stage + 1 : -1;
    case PipelinePass::kBackward:
    case PipelinePass::kInputGradient: return action.stage - 1;
    case PipelinePass::kWeightGradient: return -1;
  }
  return -1;
}

bool computes_weights(const PipelineAction& action) {
  return action.pass == PipelinePass::kBackward || action.pass == PipelinePass::kWeightGradient;
}

}  // namespace

std::string text_of(const PipelineInstruction& instruction) {
  std::string action = text_of(instruction.action);
  switch (instruction.kind) {
    case PipelineInstruction::Kind::kCompute: return action;
    case PipelineInstruction::Kind::kSend:
      return fmt::format("{} to rank {}", action, instruction.peer);
    case PipelineInstruction::Kind::kReceive:
      return fmt::format("{} from rank {}", action, instruction.peer);
  }
  return {};
}

std::vector<std::vector<PipelineInstruction>> pipeline_program(const PipelineSchedule& schedule,
                                                               bool has_tied_weights) {
  using Kind = PipelineInstruction::Kind;
  std::vector<std::vector<PipelineInstruction>> programs(schedule.actions.size());
  const auto transfer = [&](const PipelineAction& action, int from, int to) {
    if (from == to) return;
    programs[static_cast<size_t>(from)].push_back({Kind::kSend, action, to});
    programs[static_cast<size_t>(to)].push_back({Kind::kReceive, action, from});
  };
  schedule.visit([&](int rank, std::span<const PipelineAction> unit) {
    auto& program = programs[static_cast<size_t>(rank)];
    for (const PipelineAction& action : unit) program.push_back({Kind::kCompute, action});
    for (const PipelineAction& action : unit) {
      const int user = user_of(schedule, action);
      if (user >= 0) transfer(action, rank, schedule.rank_of(user));
      if (has_tied_weights && computes_weights(action) && action.stage + 1 == schedule.stages()) {
        PipelineAction weights = action;
        weights.pass = PipelinePass::kWeightGradient;
        transfer(weights, rank, schedule.rank_of(0));
      }
    }
  });
  return programs;
}

}  // namespace gallop::parallel
