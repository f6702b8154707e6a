#include "gallop/compile/codegen/loop_kernel.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/compile/codegen/cpu_source.h"
#include "gallop/compile/codegen/cuda_kernel.h"
#include "gallop/compile/codegen/loop_arguments.h"
#include "gallop/compile/codegen/loop_plan.h"

namespace gallop::compile {

namespace {

// The minimum work of a thread, to amortize its start.
constexpr double kGrainNanoseconds = 8000;

at::ScalarType tensor_format(Format format) {
  switch (format) {
    case Format::kFp32: return at::kFloat;
    case Format::kBf16: return at::kBFloat16;
    case Format::kFp16: return at::kHalf;
    case Format::kFp64: return at::kDouble;
    case Format::kBool: return at::kBool;
    case Format::kInt32: return at::kInt;
    case Format::kInt64: return at::kLong;
  }
  return at::kFloat;
}

// Number of elements from the first one to the last.
int64_t reach_of(const LoopOperand& operand, const std::vector<int64_t>& sizes) {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) last += (sizes[i] - 1) * operand.strides[i];
  return last + 1;
}

void check_tensor(const at::Tensor& tensor, const LoopOperand& operand,
                  const std::vector<int64_t>& sizes, c10::Device device, const char* what,
                  size_t at) {
  const bool fits = tensor.defined() && tensor.device() == device &&
                    tensor.layout() == at::kStrided &&
                    tensor.scalar_type() == tensor_format(operand.format);
  if (!fits) {
    throw InternalError(fmt::format("loop kernel: {} {} is not a tensor of {} on {}", what, at,
                                    name_of(operand.format),
                                    device.is_cpu() ? "the CPU" : device.str()));
  }
  const int64_t bytes =
      (tensor.storage_offset() + reach_of(operand, sizes)) * bytes_of(operand.format);
  if (bytes > static_cast<int64_t>(tensor.storage().nbytes())) {
    throw InternalError(
        fmt::format("loop kernel: {} {} reaches {} bytes of memory, its tensor has {}", what, at,
                    bytes, tensor.storage().nbytes()));
  }
}

}  // namespace

struct LoopKernel::State {
  LoopPlan plan;
  c10::Device device = c10::kCPU;
  std::unique_ptr<CudaKernel> cuda;  // Set instead of a CPU kernel on a GPU.
  std::string symbol;
  std::vector<int64_t> strides;
  std::vector<double> numbers;  // Constants.
  std::shared_future<CompiledKernel> compiled;
  mutable std::once_flag once;
  mutable LoopBlock block = nullptr;
  mutable LoopColumns columns = nullptr;
  mutable LoopTotals totals = nullptr;

  void resolve() const;
  size_t slots() const { return plan.kept.size() + plan.column_reductions.size(); }
  void run_blocks(const LoopArguments& arguments) const;
  void run_columns(const LoopArguments& arguments) const;
  void start_cuda(const LoopProgram& program, c10::Device on, KernelCompiler& compiler);
  bool load_cuda() const;
  void run_cuda(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) const;
};

void LoopKernel::State::start_cuda(const LoopProgram& program, c10::Device on,
                                   KernelCompiler& compiler) {
  device = on;
  cuda = CudaKernel::make(program, compiler.cuda(), device.index(), compiler.cuda_driver());
  plan = cuda->plan().loop;
}

// Leaves LibTorch's context of the GPU current.
bool LoopKernel::State::load_cuda() const {
  if (!cuda->has_driver()) return false;
  const c10::OptionalDeviceGuard back(device);
  c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
  return cuda->load();
}

void LoopKernel::State::run_cuda(const std::vector<const void*>& inputs,
                                 const std::vector<void*>& outputs) const {
  if (!load_cuda()) throw InternalError("loop kernel: " + cuda->fallback_reason());
  const c10::OptionalDeviceGuard on(device);
  const int64_t bytes = total_bytes(cuda->plan());
  at::Tensor scratch;
  if (bytes > 0) scratch = at::empty({bytes}, at::TensorOptions(at::kByte).device(device));
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  cuda->launch(inputs, outputs, bytes > 0 ? scratch.data_ptr() : nullptr, stream.native_handle());
}

void LoopKernel::State::resolve() const {
  std::call_once(once, [this] {
    const CompiledKernel& kernel = compiled.get();
    block = reinterpret_cast<LoopBlock>(kernel.function);
    if (block == nullptr) return;
    const auto other = [&](const char* end) {
      return dlsym(kernel.library.get(), (symbol + end).c_str());
    };
    columns = reinterpret_cast<LoopColumns>(other("_columns"));
    totals = reinterpret_cast<LoopTotals>(other("_totals"));
  });
  if (block == nullptr) throw InternalError("loop kernel: " + compiled.get().fallback_reason);
}

void LoopKernel::State::run_blocks(const LoopArguments& arguments) const {
  const int64_t parts = plan.parts;
  const auto grain = static_cast<int64_t>(kGrainNanoseconds / std::max(plan.nanoseconds, 1.0)) + 1;
  at::parallel_for(0, plan.blocks * parts, grain, [&](int64_t begin, int64_t end) {
    const auto scratch =
        std::make_unique_for_overwrite<double[]>(slots() * static_cast<size_t>(plan.part_columns));
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t at = unit / parts, row = at * plan.block_rows;
      const int64_t column = unit % parts * plan.part_columns;
      block(&arguments, at, row, std::min(row + plan.block_rows, plan.rows), column,
            std::min(column + plan.part_columns, plan.columns), scratch.get());
    }
  });
}

void LoopKernel::State::run_columns(const LoopArguments& arguments) const {
  // A row of several dimensions is not split.
  const bool whole = plan.program.row_dims > 1;
  const int64_t grain = whole ? plan.columns : std::max<int64_t>(65536 / plan.blocks, 64);
  at::parallel_for(0, plan.columns, grain,
                   [&](int64_t begin, int64_t end) { columns(&arguments, begin, end); });
}

std::vector<std::unique_ptr<LoopKernel>> LoopKernel::make(std::span<const LoopProgram> programs,
                                                          KernelCompiler& compiler,
                                                          std::span<const c10::Device> devices) {
  std::vector<std::unique_ptr<LoopKernel>> kernels;
  std::vector<KernelSource> sources;
  std::vector<State*> for_cpu;
  for (size_t i = 0; i < programs.size(); ++i) {
    const LoopProgram& program = programs[i];
    auto state = std::make_unique<State>();
    State& made = *state;
    kernels.push_back(std::unique_ptr<LoopKernel>(new LoopKernel(std::move(state))));
    if (!devices.empty() && !devices[i].is_cpu()) {
      made.start_cuda(program, devices[i], compiler);
      continue;
    }
    for_cpu.push_back(&made);
    made.plan = compile::plan(program);
    const auto add = [&](const LoopOperand& operand) {
      made.strides.insert(made.strides.end(), operand.strides.begin(), operand.strides.end());
    };
    for (const LoopOperand& input : made.plan.program.inputs) add(input);
    for (const Output& output : made.plan.program.outputs) add(output.operand);
    for (const Expression& e : made.plan.program.expressions) {
      if (e.op == Op::kConstant) made.numbers.push_back(e.number);
    }
    sources.push_back(cpu_source(made.plan));
    made.symbol = sources.back().symbol;
  }
  auto results = compiler.submit(cpu_prefix(), std::move(sources));
  for (size_t i = 0; i < for_cpu.size(); ++i) for_cpu[i]->compiled = std::move(results[i]);
  return kernels;
}

LoopKernel::LoopKernel(std::unique_ptr<State> state) : state_(std::move(state)) {}
LoopKernel::~LoopKernel() = default;

bool LoopKernel::is_done() const {
  if (state_->cuda) return state_->cuda->is_done();
  return state_->compiled.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

bool LoopKernel::wait() const {
  if (state_->cuda) return state_->load_cuda();
  return state_->compiled.get().function != nullptr;
}

std::string LoopKernel::fallback_reason() const {
  if (state_->cuda) return state_->cuda->fallback_reason();
  return is_done() ? state_->compiled.get().fallback_reason : "";
}

void LoopKernel::run(std::span<const void* const> inputs, std::span<void* const> outputs) const {
  const LoopPlan& plan = state_->plan;
  if (inputs.size() != plan.program.inputs.size() ||
      outputs.size() != plan.program.outputs.size()) {
    throw InternalError(fmt::format("loop kernel: {} inputs and {} outputs where {} and {} belong",
                                    inputs.size(), outputs.size(), plan.program.inputs.size(),
                                    plan.program.outputs.size()));
  }
  state_->resolve();
  std::vector<std::unique_ptr<double[]>> totals;
  std::vector<void*> total_pointers;
  for (size_t i = 0; i < plan.column_reductions.size() + plan.totals.size(); ++i) {
    const int64_t numbers = i < plan.column_reductions.size() ? plan.columns : plan.parts;
    totals.push_back(
        std::make_unique_for_overwrite<double[]>(static_cast<size_t>(plan.blocks * numbers)));
    total_pointers.push_back(totals.back().get());
  }
  const LoopArguments arguments{.inputs = inputs.data(),
                                .outputs = outputs.data(),
                                .sizes = plan.program.sizes.data(),
                                .strides = state_->strides.data(),
                                .numbers = state_->numbers.data(),
                                .totals = total_pointers.data(),
                                .columns = plan.columns,
                                .blocks = plan.blocks,
                                .part_columns = plan.part_columns,
                                .parts = plan.parts};
  state_->run_blocks(arguments);
  if (!plan.column_reductions.empty()) state_->run_columns(arguments);
  if (!plan.totals.empty()) state_->totals(&arguments);
}

void LoopKernel::run(std::span<const at::Tensor> inputs,
                     std::span<const at::Tensor> outputs) const {
  const LoopProgram& program = state_->plan.program;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (size_t i = 0; i < inputs.size() && i < program.inputs.size(); ++i) {
    check_tensor(inputs[i], program.inputs[i], program.sizes, state_->device, "input", i);
  }
  for (size_t i = 0; i < outputs.size() && i < program.outputs.size(); ++i) {
    check_tensor(outputs[i], program.outputs[i].operand, program.sizes, state_->device, "output",
                 i);
  }
  for (const at::Tensor& tensor : inputs) in.push_back(tensor.const_data_ptr());
  for (const at::Tensor& tensor : outputs) out.push_back(tensor.data_ptr());
  if (state_->cuda) return state_->run_cuda(in, out);
  run(in, out);
}

int64_t LoopKernel::bytes() const {
  const LoopProgram& program = state_->plan.program;
  int64_t total = 0;
  const auto add = [&](const LoopOperand& operand) {
    int64_t count = 1;
    for (size_t i = 0; i < program.sizes.size(); ++i) {
      if (operand.strides[i] != 0) count *= program.sizes[i];
    }
    total += count * bytes_of(operand.format);
  };
  for (const LoopOperand& input : program.inputs) add(input);
  for (const Output& output : program.outputs) add(output.operand);
  return total;
}

}  // namespace gallop::compile
