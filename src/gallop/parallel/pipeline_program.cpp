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

std::vector<std::vector<PipelineInstruction>> pipeline_program(const PipelineSchedule& schedule) {
  using Kind = PipelineInstruction::Kind;
  std::vector<std::vector<PipelineInstruction>> programs(schedule.actions.size());
  schedule.visit([&](int rank, std::span<const PipelineAction> unit) {
    auto& program = programs[static_cast<size_t>(rank)];
    for (const PipelineAction& action : unit) program.push_back({Kind::kCompute, action});
    for (const PipelineAction& action : unit) {
      const int user = user_of(schedule, action);
      if (user < 0) continue;
      const int peer = schedule.rank_of(user);
      if (peer == rank) continue;
      program.push_back({Kind::kSend, action, peer});
      programs[static_cast<size_t>(peer)].push_back({Kind::kReceive, action, rank});
    }
  });
  return programs;
}

}  // namespace gallop::parallel
