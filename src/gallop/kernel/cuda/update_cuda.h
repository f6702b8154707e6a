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

  /// The moment of the update that is at hand, which the finishing kernel counts. Its options are
  /// put into `options`.
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
    moment.decays = moment.weight_decay == 0 ? 0 : 1;
    if (moment.weight_decay < 0) {
      moment.weight_decay = *address<const double>(a, UpdateSlot::kScheduledDecay);
    }
    moment.options = options;
    moment.running = running();
    return moment;
  }
};

/// Numbers that a thread has at once, side by side, so that many loads are under way: 16 bytes of
/// fp32 or 8 of bf16.
inline constexpr int kTogether = 4;
static_assert(gallop::kernel::kUpdateBlock % kTogether == 0,
              "a part is aligned where its tensor is");

/// Whether kTogether numbers can be had in one access. Null is aligned.
template <typename T>
__device__ inline bool is_aligned(const T* p) {
  return reinterpret_cast<unsigned long long>(p) % sizeof(Pack<T, kTogether>) == 0;
}

/// Numbers in fp32 or bf16 as they are in memory: no load waits until those of another are
/// converted.
template <int kWidth>
struct Loaded {
  bool is_bf16;
  Pack<float, kWidth> fp32;
  Pack<Bf16, kWidth> bf16;

  __device__ void load(const float* from_fp32, const Bf16* from_bf16, Int64 i) {
    is_bf16 = from_bf16 != nullptr;
    if (is_bf16) {
      bf16 = fetch<true, kWidth>(from_bf16 + i);
    } else {
      fp32 = fetch<true, kWidth>(from_fp32 + i);
    }
  }
  __device__ float operator[](int u) const { return is_bf16 ? read(bf16.v[u]) : fp32.v[u]; }
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
  bool all_aligned;

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
    all_aligned = is_aligned(parameter) && is_aligned(bf16_parameter) && is_aligned(gradient) &&
                  is_aligned(bf16_gradient) && is_aligned(bf16_copy);
    for (int k = 0; k < Rule::kStates; ++k) all_aligned = all_aligned && is_aligned(states[k]);
  }

  __device__ bool rounds_by_draws() const {
    return bf16_copy == nullptr && address<const Int64>(of.a, UpdateSlot::kDraws) != nullptr;
  }
  __device__ Bf16 rounded_by_draw(Int64 i, float p) const {
    const unsigned bits = __float_as_uint(p);
    return {static_cast<unsigned short>((p != p ? bits | 0x400000U : bits + random(i)) >> 16)};
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
};

/// Numbers of a part, from `i` on.
template <typename Rule, int kWidth>
struct UpdateNumbers {
  const UpdatePart<Rule>& part;
  Int64 i;
  Loaded<kWidth> gradients, parameters;
  Pack<Bf16, kWidth> lost;  // By rounding the parameters.
  Pack<float, kWidth> updated, states[Rule::kStates > 0 ? Rule::kStates : 1];

  /// Has nothing but the gradients.
  __device__ UpdateNumbers(const UpdatePart<Rule>& of, Int64 from) : part(of), i(from) {
    gradients.load(part.gradient, part.bf16_gradient, i);
  }
  __device__ void load_parameters() {
    parameters.load(part.parameter, part.bf16_parameter, i);
    if (has_lost()) lost = fetch<true, kWidth>(part.bf16_copy + i);
  }
  __device__ void load_states() {
    for (int k = 0; k < Rule::kStates; ++k) states[k] = fetch<true, kWidth>(part.states[k] + i);
  }
  __device__ bool has_lost() const {
    return part.bf16_parameter != nullptr && part.bf16_copy != nullptr;
  }
  __device__ Single parameter(int u) const {
    return {has_lost() ? parameters[u] + read(lost.v[u]) : parameters[u]};
  }
  __device__ void add_squares(double& sum) const {
#pragma unroll
    for (int u = 0; u < kWidth; ++u) {
      sum += static_cast<double>(gradients[u]) * static_cast<double>(gradients[u]);
    }
  }

  /// Calls body(gradient, parameter, states) for each; it changes the latter two.
  template <typename Body>
  __device__ void change(Body body) {
#pragma unroll
    for (int u = 0; u < kWidth; ++u) {
      Single p = parameter(u), s[Rule::kStates > 0 ? Rule::kStates : 1];
      for (int k = 0; k < Rule::kStates; ++k) s[k].v = states[k].v[u];
      body(Single{gradients[u]}, p, s);
      for (int k = 0; k < Rule::kStates; ++k) states[k].v[u] = s[k].v;
      updated.v[u] = p.v;
    }
  }

  __device__ void store_states() const {
    for (int k = 0; k < Rule::kStates; ++k) deposit<true>(part.states[k] + i, states[k]);
  }
  __device__ void store_parameters() const {
    Pack<Bf16, kWidth> narrow;
    if (part.bf16_parameter == nullptr) {
      deposit<true>(part.parameter + i, updated);
      if (part.bf16_copy == nullptr) return;
      for (int u = 0; u < kWidth; ++u) write(narrow.v[u], updated.v[u]);
      deposit<true>(part.bf16_copy + i, narrow);
      return;
    }
    const bool by_draws = part.rounds_by_draws();
    Pack<Bf16, kWidth> now_lost;
#pragma unroll
    for (int u = 0; u < kWidth; ++u) {
      const float p = updated.v[u];
      narrow.v[u] = by_draws ? part.rounded_by_draw(i + u, p) : rounded(p);
      const float error = p - read(narrow.v[u]);
      write(now_lost.v[u], op_abs(error) < 0x1p120F ? error : 0.0F);
    }
    deposit<true>(part.bf16_parameter + i, narrow);
    if (has_lost()) deposit<true>(part.bf16_copy + i, now_lost);
  }
};

/// What is had of a part beside its gradients, as bits.
enum Access : int { kGradientsAlone = 0, kReads = 1, kStoresStates = 2, kStoresParameters = 4 };

template <int kAccess, int kWidth, typename Rule, typename Body>
__device__ inline void visit_numbers(const UpdatePart<Rule>& part, Int64 i, Body& body,
                                     double& sum) {
  UpdateNumbers<Rule, kWidth> numbers(part, i);
  if constexpr (kAccess != kGradientsAlone) {
    numbers.load_parameters();
    numbers.load_states();
    numbers.change(body);
    if constexpr ((kAccess & kStoresStates) != 0) numbers.store_states();
    if constexpr ((kAccess & kStoresParameters) != 0) numbers.store_parameters();
  }
  numbers.add_squares(sum);
}

/// Calls body(gradient, parameter, states) for each number, and leaves the gradients' sum of
/// squares where it belongs. A thread has the same numbers, in one order, whether or not they are
/// aligned: so sums have the same bits.
template <int kAccess, typename Rule, typename Body>
__device__ inline void visit_part(const UpdatePart<Rule>& part, Body body) {
  __shared__ double shared[256];
  double sum = 0;
  const Int64 turn = Int64{kTogether} * blockDim.x;
  for (Int64 i = part.begin + Int64{kTogether} * threadIdx.x; i < part.end; i += turn) {
    const Int64 end = part.end - i < kTogether ? part.end : i + kTogether;
    if (part.all_aligned && end - i == kTogether) {
      visit_numbers<kAccess, kTogether>(part, i, body, sum);
    } else {
      for (Int64 k = i; k < end; ++k) visit_numbers<kAccess, 1>(part, k, body, sum);
    }
  }
  sum = join_block<Plus>(sum, shared);
  if (threadIdx.x == 0) address<double>(part.of.a, UpdateSlot::kSums)[blockIdx.x] = sum;
}
template <typename Rule>
__device__ inline void visit_gradients(const UpdatePart<Rule>& part) {
  visit_part<kGradientsAlone>(part, 0);
}

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

/// The code of one number in [-1, 1], or [0, 1] without a sign.
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
      UpdateNumbers<Rule, 1> number(part, i);
      number.add_squares(sum);
      number.load_parameters();
      Single p = number.parameter(0);
      states.load(s);
      Rule::apply(Single{number.gradients[0]} * factors.scale, p, s, factors.f);
      number.updated.v[0] = p.v;
      number.store_parameters();
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
    visit_gradients(part);
    return;
  }
  const UpdateFactors<Rule> factors(part.of, true);
  if constexpr (EightBits<Rule>::kSigns >= 0) {
    if (part.scales != nullptr) {
      update_8_bits(part, factors);
      return;
    }
  }
  constexpr int kStored = Rule::kMeasures == Measures::kAndUpdates
                              ? kStoresParameters
                              : kStoresStates | kStoresParameters;
  visit_part<kStored>(part, [&](Single raw, Single& p, Single* s) {
    const Single g = raw * factors.scale;
    if constexpr (Rule::kMeasures == Measures::kNothing) {
      Rule::apply(g, p, s, factors.f);
    } else {
      Rule::apply(g, p, s, factors.f, factors.f[Rule::kFactors]);
    }
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
  constexpr int kStored = Rule::kMeasures == Measures::kAndUpdates ? kStoresStates : kReads;
  visit_part<kStored>(part, [&](Single raw, Single& p, Single* s) {
    const auto m = static_cast<double>(Rule::measure(raw * factors.scale, p, s, factors.f).v);
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

__device__ inline void norm_of(const UpdateSlots& a) { visit_gradients(UpdatePart<NoRule>(a)); }

}  // namespace gallop_cuda
