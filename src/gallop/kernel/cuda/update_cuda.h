#pragma once

// Updates of many tensors at once by a rule, with the norm of their gradients: what
// kernel/cpu/update.cpp is on the CPU. Behind loop_cuda.h, loop_cuda_reductions.h, philox_cuda.h,
// update_slots.h and the rules. Behind it stand the kernels of each rule (cuda/update.cpp).

namespace gallop_cuda {

using UpdateSlots = gallop::kernel::KernelSlots;
using gallop::kernel::EightBits;
using gallop::kernel::kStateBlock;
using gallop::kernel::Measures;
using gallop::kernel::UpdateField;
using gallop::kernel::UpdateMoment;
using gallop::kernel::UpdateSlot;

/// A number as rules take it.
struct Single {
  float v;
};
__device__ inline Single operator+(Single a, Single b) { return {a.v + b.v}; }
__device__ inline Single operator-(Single a, Single b) { return {a.v - b.v}; }
__device__ inline Single operator*(Single a, Single b) { return {a.v * b.v}; }
__device__ inline Single fma(Single a, Single b, Single c) { return {fmaf(a.v, b.v, c.v)}; }
__device__ inline Single fnma(Single a, Single b, Single c) { return {fmaf(-a.v, b.v, c.v)}; }
__device__ inline Single root(Single a) { return {op_sqrt(a.v)}; }
__device__ inline Single quotient(Single a, Single b) { return {a.v / b.v}; }
__device__ inline Single max(Single a, Single b) { return {a.v > b.v ? a.v : b.v}; }
__device__ inline Single magnitude(Single a) { return {op_abs(a.v)}; }
__device__ inline Single sign(Single a) { return {a.v > 0 ? 1.0F : a.v < 0 ? -1.0F : a.v}; }

/// For the norm alone.
struct NoRule {
  static constexpr int kStates = 0, kRunning = 0;
};

/// A tensor of a start, by its fields.
template <typename Rule>
struct UpdateTensor {
  const UpdateSlots& a;
  int tensor;

  __device__ int at(int field) const {
    constexpr int kFields =
        UpdateField::kFirstState + Rule::kStates + (EightBits<Rule>::kSigns >= 0 ? 1 : 0);
    return UpdateSlot::kFirstTensor + tensor * kFields + field;
  }
  __device__ unsigned long long get(int field) const { return a.slots[at(field)]; }
  __device__ Int64 index() const {
    return static_cast<Int64>(get(UpdateField::kIndexAndFormats) >> 2);
  }

  /// Its running numbers; null where the rule has none.
  __device__ double* running() const {
    auto* const all = address<double>(a, UpdateSlot::kRunning);
    return all == nullptr ? nullptr : all + index() * Rule::kRunning;
  }

  /// Of the update that is at hand, which the finishing kernel counts. Its options are put into
  /// `options`.
  __device__ UpdateMoment<double> moment(double* options) const {
    for (int i = 0; i < Rule::kOptions; ++i) {
      const int slot = UpdateSlot::kFirstOption + i;
      const bool is_scheduled = (a.slots[UpdateSlot::kScheduled] >> i & 1) != 0;
      options[i] = is_scheduled ? *address<const double>(a, slot) : number(a, slot);
    }
    const auto* const steps = address<const float>(a, UpdateSlot::kSteps);
    UpdateMoment<double> moment;
    moment.step = steps != nullptr ? static_cast<double>(steps[index()] + 1) : 1;
    moment.lr = static_cast<double>(*address<const float>(a, UpdateSlot::kLr)) *
                number(a, at(UpdateField::kLrFactor));
    moment.weight_decay = number(a, at(UpdateField::kWeightDecay));
    if (moment.weight_decay < 0) {
      moment.weight_decay = *address<const double>(a, UpdateSlot::kScheduledDecay);
    }
    moment.options = options;
    moment.running = running();
    return moment;
  }
};

/// The part of a tensor that a block has.
template <typename Rule>
struct UpdatePart {
  UpdateTensor<Rule> of;
  float* parameter;
  Bf16* bf16_parameter;  // If set, stands for `parameter`.
  const float* gradient;
  const Bf16* bf16_gradient;
  float* states[Rule::kStates > 0 ? Rule::kStates : 1];
  float* scales;    // Null where states are in fp32; else a row for each state.
  Bf16* bf16_copy;  // Or what rounding a bf16 parameter loses.
  Int64 begin, end;

  __device__ explicit UpdatePart(const UpdateSlots& a) : of{a, 0} {
    int end_tensor = static_cast<int>(a.slots[UpdateSlot::kTensors]);
    while (end_tensor - of.tensor > 1) {
      const int middle = (of.tensor + end_tensor) / 2;
      if (UpdateTensor<Rule>{a, middle}.get(UpdateField::kFirstBlock) <= blockIdx.x) {
        of.tensor = middle;
      } else {
        end_tensor = middle;
      }
    }
    const unsigned long long formats = of.get(UpdateField::kIndexAndFormats);
    const int own = of.at(UpdateField::kParameter);
    parameter = (formats & 2) != 0 ? nullptr : address<float>(a, own);
    bf16_parameter = (formats & 2) != 0 ? address<Bf16>(a, own) : nullptr;
    const bool is_bf16 = (formats & 1) != 0;
    const int given = of.at(UpdateField::kGradient);
    gradient = is_bf16 ? nullptr : address<const float>(a, given);
    bf16_gradient = is_bf16 ? address<const Bf16>(a, given) : nullptr;
    for (int k = 0; k < Rule::kStates; ++k) {
      states[k] = address<float>(a, of.at(UpdateField::kFirstState + k));
    }
    scales = nullptr;
    if constexpr (EightBits<Rule>::kSigns >= 0) {
      scales = address<float>(a, of.at(UpdateField::kFirstState + Rule::kStates));
    }
    bf16_copy = address<Bf16>(a, of.at(UpdateField::kBf16Copy));
    const auto size = static_cast<Int64>(of.get(UpdateField::kSize));
    const auto first = static_cast<Int64>(of.get(UpdateField::kFirstBlock));
    begin = (static_cast<Int64>(blockIdx.x) - first) * gallop::kernel::kUpdateBlock;
    end = size - begin < gallop::kernel::kUpdateBlock ? size : begin + gallop::kernel::kUpdateBlock;
  }

  __device__ float gradient_at(Int64 i) const {
    return bf16_gradient != nullptr ? read(bf16_gradient[i]) : gradient[i];
  }

  /// Calls body(i, gradient) for each number, and leaves the sum of squares where it belongs.
  template <typename Body>
  __device__ void over(Body body) const {
    __shared__ double shared[256];
    double sum = 0;
    for (Int64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const float g = gradient_at(i);
      sum += static_cast<double>(g) * static_cast<double>(g);
      body(i, g);
    }
    sum = join_block<Plus>(sum, shared);
    if (threadIdx.x == 0) address<double>(of.a, UpdateSlot::kSums)[blockIdx.x] = sum;
  }

  __device__ Single load_parameter(Int64 i) const {
    if (bf16_parameter == nullptr) return {parameter[i]};
    const float p = read(bf16_parameter[i]);
    return {bf16_copy != nullptr ? p + read(bf16_copy[i]) : p};
  }
  __device__ void store_parameter(Int64 i, float p) const {
    if (bf16_parameter == nullptr) {
      parameter[i] = p;
      if (bf16_copy != nullptr) write(bf16_copy[i], p);
    } else if (bf16_copy != nullptr) {
      write(bf16_parameter[i], p);
      const float lost = p - read(bf16_parameter[i]);
      write(bf16_copy[i], op_abs(lost) < 0x1p120F ? lost : 0.0F);
    } else if (address<const Int64>(of.a, UpdateSlot::kDraws) != nullptr) {
      const unsigned bits = __float_as_uint(p);
      bf16_parameter[i].bits =
          static_cast<unsigned short>((p != p ? bits | 0x400000U : bits + random(i)) >> 16);
    } else {
      write(bf16_parameter[i], p);
    }
  }
  // 16 bits, as kernel/update.h's RoundingDraw says.
  __device__ unsigned random(Int64 i) const {
    const auto* const draws = address<const unsigned long long>(of.a, UpdateSlot::kDraws);
    const unsigned long long seed = draws[0], step = draws[1];
    unsigned words[4] = {static_cast<unsigned>(i / 128 * 16 + i % 16),
                         static_cast<unsigned>(of.index()), static_cast<unsigned>(step),
                         static_cast<unsigned>(step >> 32)};
    philox4x32(
        static_cast<unsigned>(seed),
        static_cast<unsigned>(seed >> 32) ^ static_cast<unsigned>(of.a.slots[UpdateSlot::kPurpose]),
        words);
    const int part = static_cast<int>(i % 128 / 16);
    const unsigned word = words[part / 2];
    return part % 2 == 0 ? word & 0xffffU : word >> 16;
  }

  __device__ void load_states(Int64 i, Single* s) const {
    for (int k = 0; k < Rule::kStates; ++k) s[k].v = states[k][i];
  }
  __device__ void store_states(Int64 i, const Single* s) const {
    for (int k = 0; k < Rule::kStates; ++k) states[k][i] = s[k].v;
  }
};

__device__ inline bool is_skipped(const UpdateSlots& a) {
  const auto* const found_inf = address<const float>(a, UpdateSlot::kFoundInf);
  return found_inf != nullptr && *found_inf != 0;
}

/// A rule's factors, its trust ratio behind them, and that of the gradients.
template <typename Rule>
struct UpdateFactors {
  Single f[Rule::kFactors + 1], scale;

  __device__ UpdateFactors(const UpdateTensor<Rule>& of, bool with_ratio) {
    // A power costs as much as many numbers.
    __shared__ float shared[Rule::kFactors + 1];
    if (threadIdx.x == 0) {
      double options[Rule::kOptions];
      const UpdateMoment<double> moment = of.moment(options);
      double wide[Rule::kFactors], next[Rule::kRunning > 0 ? Rule::kRunning : 1];
      Rule::begin(moment, wide, next);
      for (int i = 0; i < Rule::kFactors; ++i) shared[i] = static_cast<float>(wide[i]);
      shared[Rule::kFactors] = with_ratio ? ratio(of, moment) : 1;
    }
    __syncthreads();
    for (int i = 0; i <= Rule::kFactors; ++i) f[i].v = shared[i];
    const auto* const grad_scale = address<const float>(of.a, UpdateSlot::kGradScale);
    scale.v = grad_scale != nullptr ? 1 / *grad_scale : 1;
  }

  __device__ static float ratio(const UpdateTensor<Rule>& of, const UpdateMoment<double>& moment) {
    if constexpr (Rule::kMeasures == Measures::kNothing) {
      return 1;
    } else {
      const auto* const sums =
          address<const double>(of.a, UpdateSlot::kMeasured) + Int64{2} * of.tensor;
      return static_cast<float>(Rule::ratio(moment, op_sqrt(sums[0]), op_sqrt(sums[1])));
    }
  }
};

/// What StateMap computes, before the kernel runs: in a kernel it would be divisions in fp64.
template <bool kSigned>
struct StateTable {
  using Map = gallop::kernel::StateMap<kSigned>;

  float begin[Map::kDecades] = {}, up[Map::kDecades] = {}, shift[Map::kDecades] = {};
  float slope[Map::kDecades] = {}, offset[Map::kDecades] = {};
  int first[Map::kDecades] = {}, last[Map::kDecades] = {};  // Ranks.
  float top_begin = static_cast<float>(Map::top_begin());

  __device__ constexpr StateTable() {
    for (int i = 0; i < Map::kDecades; ++i) {
      begin[i] = static_cast<float>(Map::begin(i));
      up[i] = static_cast<float>(Map::up(i));
      shift[i] = static_cast<float>(Map::shift(i));
      slope[i] = static_cast<float>(Map::slope(i));
      offset[i] = static_cast<float>(Map::offset(i));
      first[i] = static_cast<int>(Map::first(i));
      last[i] = static_cast<int>(Map::first(i) + Map::cells(i)) - 1;
    }
  }
};

/// Of one number in [-1, 1], or [0, 1] without a sign.
template <bool kSigned>
__device__ inline unsigned char encoded(float share) {
  using Map = gallop::kernel::StateMap<kSigned>;
  constexpr StateTable<kSigned> kTable;
  const float size = op_abs(share);
  int rank = 0;
#pragma unroll
  for (int i = 0; i < Map::kDecades; ++i) {
    if (!(size > kTable.begin[i])) break;
    const float inner = fmaf(size, kTable.up[i], kTable.shift[i]);
    const int last = kTable.last[i];
    rank = inner < static_cast<float>(last) ? static_cast<int>(inner) : last;
  }
  if (size > kTable.top_begin) rank = Map::kTopRank;
  if (kSigned && share < 0) rank = rank < Map::kZero ? -rank : -Map::kZero;
  return static_cast<unsigned char>(Map::kZero + rank);
}
template <bool kSigned>
__device__ inline float decoded(unsigned char code) {
  using Map = gallop::kernel::StateMap<kSigned>;
  constexpr StateTable<kSigned> kTable;
  const int place = static_cast<int>(code) - Map::kZero, rank = place < 0 ? -place : place;
  float size = 0;
#pragma unroll
  for (int i = 0; i < Map::kDecades; ++i) {
    if (rank < kTable.first[i]) break;
    size = fmaf(static_cast<float>(rank), kTable.slope[i], kTable.offset[i]);
  }
  if (rank == Map::kTopRank) size = 1;
  return place < 0 ? -size : size;
}

/// States in 8 bits. At each turn the block has the numbers that share a scale.
template <typename Rule>
struct States8 {
  static_assert(kCudaThreads == kStateBlock && gallop::kernel::kUpdateBlock % kStateBlock == 0,
                "a thread for each number of a scale");

  const UpdatePart<Rule>& part;
  Int64 turn;  ///< Its first number.

  __device__ static constexpr bool has_sign(int state) {
    return (EightBits<Rule>::kSigns >> state & 1) != 0;
  }
  __device__ unsigned char& code(int state) const {
    return reinterpret_cast<unsigned char*>(part.states[state])[turn + threadIdx.x];
  }
  __device__ float& scale(int state) const {
    const auto size = static_cast<Int64>(part.of.get(UpdateField::kSize));
    return part.scales[state * ((size + kStateBlock - 1) / kStateBlock) + turn / kStateBlock];
  }
  __device__ void load(Single* s) const {
    for (int k = 0; k < Rule::kStates; ++k) {
      s[k].v = scale(k) * (has_sign(k) ? decoded<true>(code(k)) : decoded<false>(code(k)));
    }
  }
  /// All threads of the block take part; those without a number have states of 0.
  __device__ void store(const Single* s, bool has_number, void* shared) const {
    for (int k = 0; k < Rule::kStates; ++k) {
      const float size = op_abs(s[k].v);
      const float most = join_row<Larger>(size > 0 ? size : 0.0F, shared);
      const float share = s[k].v * (most > 0 ? 1 / most : 0.0F);
      if (has_number) code(k) = has_sign(k) ? encoded<true>(share) : encoded<false>(share);
      if (threadIdx.x == 0) scale(k) = most;
    }
  }
};

template <typename Rule>
__device__ void update_8_bits(const UpdatePart<Rule>& part, const UpdateFactors<Rule>& factors) {
  __shared__ double shared[256];
  double sum = 0;
  for (Int64 turn = part.begin; turn < part.end; turn += kStateBlock) {
    const States8<Rule> states{part, turn};
    const Int64 i = turn + threadIdx.x;
    Single s[Rule::kStates] = {};
    if (i < part.end) {
      const float raw = part.gradient_at(i);
      sum += static_cast<double>(raw) * static_cast<double>(raw);
      Single p = part.load_parameter(i);
      states.load(s);
      Rule::apply(Single{raw} * factors.scale, p, s, factors.f);
      part.store_parameter(i, p.v);
    }
    // Scales that others still load are stored behind this.
    __syncthreads();
    states.store(s, i < part.end, shared);
  }
  sum = join_block<Plus>(sum, shared);
  if (threadIdx.x == 0) address<double>(part.of.a, UpdateSlot::kSums)[blockIdx.x] = sum;
}

template <typename Rule>
__device__ void update_by(const UpdateSlots& a) {
  const UpdatePart<Rule> part(a);
  if (is_skipped(a)) {
    part.over([](Int64, float) {});
    return;
  }
  const UpdateFactors<Rule> factors(part.of, true);
  if constexpr (EightBits<Rule>::kSigns >= 0) {
    if (part.scales != nullptr) {
      update_8_bits(part, factors);
      return;
    }
  }
  part.over([&](Int64 i, float raw) {
    const Single g = Single{raw} * factors.scale;
    Single p = part.load_parameter(i), s[Rule::kStates > 0 ? Rule::kStates : 1];
    part.load_states(i, s);
    if constexpr (Rule::kMeasures == Measures::kNothing) {
      Rule::apply(g, p, s, factors.f);
    } else {
      Rule::apply(g, p, s, factors.f, factors.f[Rule::kFactors]);
    }
    if constexpr (Rule::kMeasures != Measures::kAndUpdates) part.store_states(i, s);
    part.store_parameter(i, p.v);
  });
}

/// Before update_by of a rule with a trust ratio.
template <typename Rule>
__device__ void measure_by(const UpdateSlots& a) {
  if (is_skipped(a)) return;
  const UpdatePart<Rule> part(a);
  const UpdateFactors<Rule> factors(part.of, false);
  __shared__ double shared[256];
  double of_parameter = 0, measured = 0;
  part.over([&](Int64 i, float raw) {
    const Single g = Single{raw} * factors.scale;
    Single p = part.load_parameter(i), s[Rule::kStates > 0 ? Rule::kStates : 1];
    part.load_states(i, s);
    const double m = static_cast<double>(Rule::measure(g, p, s, factors.f).v);
    if constexpr (Rule::kMeasures == Measures::kAndUpdates) part.store_states(i, s);
    of_parameter += static_cast<double>(p.v) * static_cast<double>(p.v);
    measured += m * m;
  });
  of_parameter = join_block<Plus>(of_parameter, shared);
  measured = join_block<Plus>(measured, shared);
  if (threadIdx.x != 0) return;
  double* const sums = address<double>(a, UpdateSlot::kMeasures) + Int64{2} * blockIdx.x;
  sums[0] = of_parameter;
  sums[1] = measured;
}

/// Behind measure_by: joins the sums of each tensor. A block for each.
template <typename Rule>
__device__ void join_measures_by(const UpdateSlots& a) {
  if (is_skipped(a)) return;
  __shared__ double shared[256];
  const UpdateTensor<Rule> of{a, static_cast<int>(blockIdx.x)};
  const auto first = static_cast<Int64>(of.get(UpdateField::kFirstBlock));
  const auto size = static_cast<Int64>(of.get(UpdateField::kSize));
  const Int64 blocks = (size + gallop::kernel::kUpdateBlock - 1) / gallop::kernel::kUpdateBlock;
  const double* const sums = address<const double>(a, UpdateSlot::kMeasures) + 2 * first;
  for (int which = 0; which < 2; ++which) {
    double sum = 0;
    for (Int64 i = threadIdx.x; i < blocks; i += blockDim.x) sum += sums[2 * i + which];
    sum = join_block<Plus>(sum, shared);
    if (threadIdx.x == 0) {
      address<double>(a, UpdateSlot::kMeasured)[Int64{2} * of.tensor + which] = sum;
    }
  }
}

/// Behind a start: counts its updates; behind the last, joins all sums. One block.
template <typename Rule>
__device__ void finish_by(const UpdateSlots& a) {
  const int tensors = static_cast<int>(a.slots[UpdateSlot::kTensors]);
  for (int t = static_cast<int>(threadIdx.x); t < tensors && !is_skipped(a); t += 256) {
    const UpdateTensor<Rule> of{a, t};
    if constexpr (Rule::kRunning > 0) {
      double options[Rule::kOptions], factors[Rule::kFactors], next[Rule::kRunning];
      Rule::begin(of.moment(options), factors, next);
      for (int k = 0; k < Rule::kRunning; ++k) of.running()[k] = next[k];
    }
    auto* const steps = address<float>(a, UpdateSlot::kSteps);
    if (steps != nullptr) steps[of.index()] += 1;
  }
  auto* const norm = address<double>(a, UpdateSlot::kNorm);
  if (norm == nullptr) return;
  __shared__ double shared[256];
  const auto* const sums = address<const double>(a, UpdateSlot::kAllSums);
  const auto blocks = static_cast<Int64>(a.slots[UpdateSlot::kAllBlocks]);
  double sum = 0;
  for (Int64 i = threadIdx.x; i < blocks; i += blockDim.x) sum += sums[i];
  sum = join_block<Plus>(sum, shared);
  if (threadIdx.x == 0) *norm = op_sqrt(sum);
}

__device__ inline void norm_of(const UpdateSlots& a) {
  const UpdatePart<NoRule> part(a);
  part.over([](Int64, float) {});
}

}  // namespace gallop_cuda
