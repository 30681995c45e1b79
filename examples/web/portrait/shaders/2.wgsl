// denoise+temperature+contrast+vignette: each invocation computes one pixel, in tiles 32 wide

struct Block {
    img_size_1: i32,
    img_size_0: i32,
    out_dim_1: i32,
    out_dim_0: i32,
    width: u32,
    height: u32,
    tiles_across: u32,
    zero: u32,
    param_radius: i32,
    param_sigma_space: f32,
    param_sigma_color: f32,
    param_value: f32,
    param_tint: f32,
    param_value_2: f32,
    param_amount: f32,
    param_radius_2: f32,
    param_softness: f32,
}

@group(0) @binding(0) var<storage, read> in_img: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var<uniform> p: Block;

// Return the same number, hidden from the compiler (p.zero is 0): some compilers regroup sums and
// products, which is wrong where rounding or infinities matter.
fn hide_f32(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ p.zero);
}

fn unpack_u8(word: u32) -> vec4<i32> {
    return vec4<i32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
}

// Conversions run at a quarter of the speed of additions on many GPUs. Instead the byte is placed
// in the mantissa of 256.0. Drivers may distribute a following product over the difference, which
// loses almost no precision with a number this small.
fn from_byte(byte: i32) -> f32 {
    return bitcast<f32>((u32(byte) << 15u) | 0x43800000u) - 256.0f;
}

// Saturate and round, halves up: the factor adds one unit in the last place, so that the sum, which
// rounds halves to even, rounds up. (Some drivers would merge two sums.) NaN gives 0.
fn byte_f32(x: f32) -> i32 {
    let inside = min(select(0.0f, x, x > 0.0f), 255.0f);
    return i32(bitcast<u32>(inside * 1.00000011920929f + 8388608.0f) & 255u);
}

fn pack_u8(bytes: vec4<i32>) -> u32 {
    let b = vec4<u32>(bytes) << vec4<u32>(0u, 8u, 16u, 24u);
    return (b.x | b.y) | (b.z | b.w);
}

// Division is only guaranteed to be accurate if the divisor is neither very large nor very small.
fn div_f32(a: f32, b: f32) -> f32 {
    let size = abs(b);
    let k = select(select(1.0f, 1.8446744e19f, size < 1e-30f), 5.4210109e-20f, size > 1e30f);
    return (a / (b * k)) * k;
}

// exp(r) for |r| <= ln(2) / 2
fn exp_core_f32(r: f32) -> f32 {
    var q = 1.9875691500e-4f;
    q = q * r + 1.3981999507e-3f;
    q = q * r + 8.3334519073e-3f;
    q = q * r + 4.1665795894e-2f;
    q = q * r + 1.6666665459e-1f;
    q = q * r + 5.0000001201e-1f;
    return ((q * r) * r + r) + 1.0f;
}

// Results below the smallest normal number are 0. Comparisons keep NaN, which makes the result NaN:
// where the limit is not hidden, Mesa takes them for its own min and max, which drop it.
fn exp_f32(x: f32) -> f32 {
    let below = x < hide_f32(-87.3365f);
    let above = select(x, -87.3365f, below);
    let y = select(above, 89.0f, above > hide_f32(89.0f));
    // The sum with 1.5 * 2^23 rounds to an integer, in the low bits. A conversion would be slower.
    let sum = max(y * 1.44269504f + 12582912.0f, 12582787.0f);
    let bits = bitcast<u32>(sum) ^ p.zero;
    let n = bitcast<f32>(bits) - 12582912.0f;
    let r = hide_f32(y - n * 0.693359375f) - n * -2.12194440e-4f;
    // 2^(n - 1), because there is no 2^128; n is at least -125.
    let half = select(bitcast<f32>((bits << 23u) + 0x3f000000u), 0.0f, below);
    return (exp_core_f32(r) * half) * 2.0f;
}

fn read_img(x: i32, y: i32, dx: i32, dy: i32) -> vec4<i32> {
    let column = u32(x + clamp(dx, -x, p.img_size_1 - 1i - x));
    let row = u32(y + clamp(dy, -y, p.img_size_0 - 1i - y));
    let i = row * u32(p.img_size_1) + column;
    return unpack_u8(in_img[i]);
}

fn kernel(y: i32, x: i32) -> vec4<i32> {
    let t1 = div_f32(-0.5f, p.param_sigma_space * p.param_sigma_space);
    let t2 = div_f32(-0.5f, (p.param_sigma_color * p.param_sigma_color) * 3.0f);
    let t3 = read_img(x, y, 0i, 0i);
    let t4 = from_byte(t3.x) * 0.003921569f;
    let t5 = from_byte(t3.y) * 0.003921569f;
    let t6 = from_byte(t3.z) * 0.003921569f;
    let t7 = read_img(x, y, -2i, -2i);
    let t8 = from_byte(t7.x) * 0.003921569f;
    let t9 = from_byte(t7.y) * 0.003921569f;
    let t10 = from_byte(t7.z) * 0.003921569f;
    let t11 = t8 - t4;
    let t12 = t9 - t5;
    let t13 = t10 - t6;
    let t14 = (8.0f * t1) + ((((t11 * t11) + (t12 * t12)) + (t13 * t13)) * t2);
    let t15 = exp_f32(t14);
    let t16 = read_img(x, y, -1i, -2i);
    let t17 = from_byte(t16.x) * 0.003921569f;
    let t18 = from_byte(t16.y) * 0.003921569f;
    let t19 = from_byte(t16.z) * 0.003921569f;
    let t20 = t17 - t4;
    let t21 = t18 - t5;
    let t22 = t19 - t6;
    let t23 = (5.0f * t1) + ((((t20 * t20) + (t21 * t21)) + (t22 * t22)) * t2);
    let t24 = exp_f32(t23);
    let t25 = read_img(x, y, 0i, -2i);
    let t26 = from_byte(t25.x) * 0.003921569f;
    let t27 = from_byte(t25.y) * 0.003921569f;
    let t28 = from_byte(t25.z) * 0.003921569f;
    let t29 = t26 - t4;
    let t30 = t27 - t5;
    let t31 = t28 - t6;
    let t32 = (4.0f * t1) + ((((t29 * t29) + (t30 * t30)) + (t31 * t31)) * t2);
    let t33 = exp_f32(t32);
    let t34 = (((t4 * hide_f32(0.0f)) + (t8 * t15)) + (t17 * t24)) + (t26 * t33);
    let t35 = (((t5 * hide_f32(0.0f)) + (t9 * t15)) + (t18 * t24)) + (t27 * t33);
    let t36 = (((t6 * hide_f32(0.0f)) + (t10 * t15)) + (t19 * t24)) + (t28 * t33);
    let t37 = read_img(x, y, 1i, -2i);
    let t38 = from_byte(t37.x) * 0.003921569f;
    let t39 = from_byte(t37.y) * 0.003921569f;
    let t40 = from_byte(t37.z) * 0.003921569f;
    let t41 = t38 - t4;
    let t42 = t39 - t5;
    let t43 = t40 - t6;
    let t44 = (5.0f * t1) + ((((t41 * t41) + (t42 * t42)) + (t43 * t43)) * t2);
    let t45 = exp_f32(t44);
    let t46 = read_img(x, y, 2i, -2i);
    let t47 = from_byte(t46.x) * 0.003921569f;
    let t48 = from_byte(t46.y) * 0.003921569f;
    let t49 = from_byte(t46.z) * 0.003921569f;
    let t50 = t47 - t4;
    let t51 = t48 - t5;
    let t52 = t49 - t6;
    let t53 = (8.0f * t1) + ((((t50 * t50) + (t51 * t51)) + (t52 * t52)) * t2);
    let t54 = exp_f32(t53);
    let t55 = read_img(x, y, -2i, -1i);
    let t56 = from_byte(t55.x) * 0.003921569f;
    let t57 = from_byte(t55.y) * 0.003921569f;
    let t58 = from_byte(t55.z) * 0.003921569f;
    let t59 = t56 - t4;
    let t60 = t57 - t5;
    let t61 = t58 - t6;
    let t62 = (5.0f * t1) + ((((t59 * t59) + (t60 * t60)) + (t61 * t61)) * t2);
    let t63 = exp_f32(t62);
    let t64 = read_img(x, y, -1i, -1i);
    let t65 = from_byte(t64.x) * 0.003921569f;
    let t66 = from_byte(t64.y) * 0.003921569f;
    let t67 = from_byte(t64.z) * 0.003921569f;
    let t68 = t65 - t4;
    let t69 = t66 - t5;
    let t70 = t67 - t6;
    let t71 = (2.0f * t1) + ((((t68 * t68) + (t69 * t69)) + (t70 * t70)) * t2);
    let t72 = exp_f32(t71);
    let t73 = (((t34 + (t38 * t45)) + (t47 * t54)) + (t56 * t63)) + (t65 * t72);
    let t74 = (((t35 + (t39 * t45)) + (t48 * t54)) + (t57 * t63)) + (t66 * t72);
    let t75 = (((t36 + (t40 * t45)) + (t49 * t54)) + (t58 * t63)) + (t67 * t72);
    let t76 = ((((((0.0f + t15) + t24) + t33) + t45) + t54) + t63) + t72;
    let t77 = read_img(x, y, 0i, -1i);
    let t78 = from_byte(t77.x) * 0.003921569f;
    let t79 = from_byte(t77.y) * 0.003921569f;
    let t80 = from_byte(t77.z) * 0.003921569f;
    let t81 = t78 - t4;
    let t82 = t79 - t5;
    let t83 = t80 - t6;
    let t84 = (1.0f * t1) + ((((t81 * t81) + (t82 * t82)) + (t83 * t83)) * t2);
    let t85 = exp_f32(t84);
    let t86 = read_img(x, y, 1i, -1i);
    let t87 = from_byte(t86.x) * 0.003921569f;
    let t88 = from_byte(t86.y) * 0.003921569f;
    let t89 = from_byte(t86.z) * 0.003921569f;
    let t90 = t87 - t4;
    let t91 = t88 - t5;
    let t92 = t89 - t6;
    let t93 = (2.0f * t1) + ((((t90 * t90) + (t91 * t91)) + (t92 * t92)) * t2);
    let t94 = exp_f32(t93);
    let t95 = read_img(x, y, 2i, -1i);
    let t96 = from_byte(t95.x) * 0.003921569f;
    let t97 = from_byte(t95.y) * 0.003921569f;
    let t98 = from_byte(t95.z) * 0.003921569f;
    let t99 = t96 - t4;
    let t100 = t97 - t5;
    let t101 = t98 - t6;
    let t102 = (5.0f * t1) + ((((t99 * t99) + (t100 * t100)) + (t101 * t101)) * t2);
    let t103 = exp_f32(t102);
    let t104 = read_img(x, y, -2i, 0i);
    let t105 = from_byte(t104.x) * 0.003921569f;
    let t106 = from_byte(t104.y) * 0.003921569f;
    let t107 = from_byte(t104.z) * 0.003921569f;
    let t108 = t105 - t4;
    let t109 = t106 - t5;
    let t110 = t107 - t6;
    let t111 = (4.0f * t1) + ((((t108 * t108) + (t109 * t109)) + (t110 * t110)) * t2);
    let t112 = exp_f32(t111);
    let t113 = (((t73 + (t78 * t85)) + (t87 * t94)) + (t96 * t103)) + (t105 * t112);
    let t114 = (((t74 + (t79 * t85)) + (t88 * t94)) + (t97 * t103)) + (t106 * t112);
    let t115 = (((t75 + (t80 * t85)) + (t89 * t94)) + (t98 * t103)) + (t107 * t112);
    let t116 = read_img(x, y, -1i, 0i);
    let t117 = from_byte(t116.x) * 0.003921569f;
    let t118 = from_byte(t116.y) * 0.003921569f;
    let t119 = from_byte(t116.z) * 0.003921569f;
    let t120 = t117 - t4;
    let t121 = t118 - t5;
    let t122 = t119 - t6;
    let t123 = (1.0f * t1) + ((((t120 * t120) + (t121 * t121)) + (t122 * t122)) * t2);
    let t124 = exp_f32(t123);
    let t125 = from_byte(t3.x) * 0.003921569f;
    let t126 = from_byte(t3.y) * 0.003921569f;
    let t127 = from_byte(t3.z) * 0.003921569f;
    let t128 = t125 - t4;
    let t129 = t126 - t5;
    let t130 = t127 - t6;
    let t131 = (hide_f32(0.0f) * t1) + ((((t128 * t128) + (t129 * t129)) + (t130 * t130)) * t2);
    let t132 = exp_f32(t131);
    let t133 = read_img(x, y, 1i, 0i);
    let t134 = from_byte(t133.x) * 0.003921569f;
    let t135 = from_byte(t133.y) * 0.003921569f;
    let t136 = from_byte(t133.z) * 0.003921569f;
    let t137 = t134 - t4;
    let t138 = t135 - t5;
    let t139 = t136 - t6;
    let t140 = (1.0f * t1) + ((((t137 * t137) + (t138 * t138)) + (t139 * t139)) * t2);
    let t141 = exp_f32(t140);
    let t142 = ((((((t76 + t85) + t94) + t103) + t112) + t124) + t132) + t141;
    let t143 = read_img(x, y, 2i, 0i);
    let t144 = from_byte(t143.x) * 0.003921569f;
    let t145 = from_byte(t143.y) * 0.003921569f;
    let t146 = from_byte(t143.z) * 0.003921569f;
    let t147 = t144 - t4;
    let t148 = t145 - t5;
    let t149 = t146 - t6;
    let t150 = (4.0f * t1) + ((((t147 * t147) + (t148 * t148)) + (t149 * t149)) * t2);
    let t151 = exp_f32(t150);
    let t152 = (((t113 + (t117 * t124)) + (t125 * t132)) + (t134 * t141)) + (t144 * t151);
    let t153 = (((t114 + (t118 * t124)) + (t126 * t132)) + (t135 * t141)) + (t145 * t151);
    let t154 = (((t115 + (t119 * t124)) + (t127 * t132)) + (t136 * t141)) + (t146 * t151);
    let t155 = read_img(x, y, -2i, 1i);
    let t156 = from_byte(t155.x) * 0.003921569f;
    let t157 = from_byte(t155.y) * 0.003921569f;
    let t158 = from_byte(t155.z) * 0.003921569f;
    let t159 = t156 - t4;
    let t160 = t157 - t5;
    let t161 = t158 - t6;
    let t162 = (5.0f * t1) + ((((t159 * t159) + (t160 * t160)) + (t161 * t161)) * t2);
    let t163 = exp_f32(t162);
    let t164 = read_img(x, y, -1i, 1i);
    let t165 = from_byte(t164.x) * 0.003921569f;
    let t166 = from_byte(t164.y) * 0.003921569f;
    let t167 = from_byte(t164.z) * 0.003921569f;
    let t168 = t165 - t4;
    let t169 = t166 - t5;
    let t170 = t167 - t6;
    let t171 = (2.0f * t1) + ((((t168 * t168) + (t169 * t169)) + (t170 * t170)) * t2);
    let t172 = exp_f32(t171);
    let t173 = read_img(x, y, 0i, 1i);
    let t174 = from_byte(t173.x) * 0.003921569f;
    let t175 = from_byte(t173.y) * 0.003921569f;
    let t176 = from_byte(t173.z) * 0.003921569f;
    let t177 = t174 - t4;
    let t178 = t175 - t5;
    let t179 = t176 - t6;
    let t180 = (1.0f * t1) + ((((t177 * t177) + (t178 * t178)) + (t179 * t179)) * t2);
    let t181 = exp_f32(t180);
    let t182 = read_img(x, y, 1i, 1i);
    let t183 = from_byte(t182.x) * 0.003921569f;
    let t184 = from_byte(t182.y) * 0.003921569f;
    let t185 = from_byte(t182.z) * 0.003921569f;
    let t186 = t183 - t4;
    let t187 = t184 - t5;
    let t188 = t185 - t6;
    let t189 = (2.0f * t1) + ((((t186 * t186) + (t187 * t187)) + (t188 * t188)) * t2);
    let t190 = exp_f32(t189);
    let t191 = (((t152 + (t156 * t163)) + (t165 * t172)) + (t174 * t181)) + (t183 * t190);
    let t192 = (((t153 + (t157 * t163)) + (t166 * t172)) + (t175 * t181)) + (t184 * t190);
    let t193 = (((t154 + (t158 * t163)) + (t167 * t172)) + (t176 * t181)) + (t185 * t190);
    let t194 = read_img(x, y, 2i, 1i);
    let t195 = from_byte(t194.x) * 0.003921569f;
    let t196 = from_byte(t194.y) * 0.003921569f;
    let t197 = from_byte(t194.z) * 0.003921569f;
    let t198 = t195 - t4;
    let t199 = t196 - t5;
    let t200 = t197 - t6;
    let t201 = (5.0f * t1) + ((((t198 * t198) + (t199 * t199)) + (t200 * t200)) * t2);
    let t202 = exp_f32(t201);
    let t203 = read_img(x, y, -2i, 2i);
    let t204 = from_byte(t203.x) * 0.003921569f;
    let t205 = from_byte(t203.y) * 0.003921569f;
    let t206 = from_byte(t203.z) * 0.003921569f;
    let t207 = t204 - t4;
    let t208 = t205 - t5;
    let t209 = t206 - t6;
    let t210 = (8.0f * t1) + ((((t207 * t207) + (t208 * t208)) + (t209 * t209)) * t2);
    let t211 = exp_f32(t210);
    let t212 = ((((((t142 + t151) + t163) + t172) + t181) + t190) + t202) + t211;
    let t213 = read_img(x, y, -1i, 2i);
    let t214 = from_byte(t213.x) * 0.003921569f;
    let t215 = from_byte(t213.y) * 0.003921569f;
    let t216 = from_byte(t213.z) * 0.003921569f;
    let t217 = t214 - t4;
    let t218 = t215 - t5;
    let t219 = t216 - t6;
    let t220 = (5.0f * t1) + ((((t217 * t217) + (t218 * t218)) + (t219 * t219)) * t2);
    let t221 = exp_f32(t220);
    let t222 = read_img(x, y, 0i, 2i);
    let t223 = from_byte(t222.x) * 0.003921569f;
    let t224 = from_byte(t222.y) * 0.003921569f;
    let t225 = from_byte(t222.z) * 0.003921569f;
    let t226 = t223 - t4;
    let t227 = t224 - t5;
    let t228 = t225 - t6;
    let t229 = (4.0f * t1) + ((((t226 * t226) + (t227 * t227)) + (t228 * t228)) * t2);
    let t230 = exp_f32(t229);
    let t231 = (((t191 + (t195 * t202)) + (t204 * t211)) + (t214 * t221)) + (t223 * t230);
    let t232 = (((t192 + (t196 * t202)) + (t205 * t211)) + (t215 * t221)) + (t224 * t230);
    let t233 = (((t193 + (t197 * t202)) + (t206 * t211)) + (t216 * t221)) + (t225 * t230);
    let t234 = read_img(x, y, 1i, 2i);
    let t235 = from_byte(t234.x) * 0.003921569f;
    let t236 = from_byte(t234.y) * 0.003921569f;
    let t237 = from_byte(t234.z) * 0.003921569f;
    let t238 = t235 - t4;
    let t239 = t236 - t5;
    let t240 = t237 - t6;
    let t241 = (5.0f * t1) + ((((t238 * t238) + (t239 * t239)) + (t240 * t240)) * t2);
    let t242 = exp_f32(t241);
    let t243 = read_img(x, y, 2i, 2i);
    let t244 = from_byte(t243.x) * 0.003921569f;
    let t245 = from_byte(t243.y) * 0.003921569f;
    let t246 = from_byte(t243.z) * 0.003921569f;
    let t247 = t244 - t4;
    let t248 = t245 - t5;
    let t249 = t246 - t6;
    let t250 = (8.0f * t1) + ((((t247 * t247) + (t248 * t248)) + (t249 * t249)) * t2);
    let t251 = exp_f32(t250);
    let t252 = (((t212 + t221) + t230) + t242) + t251;
    let t253 = byte_f32(div_f32((t231 + (t235 * t242)) + (t244 * t251), t252) * 255.0f);
    let t254 = byte_f32(div_f32((t232 + (t236 * t242)) + (t245 * t251), t252) * 255.0f);
    let t255 = byte_f32(div_f32((t233 + (t237 * t242)) + (t246 * t251), t252) * 255.0f);
    let t256 = from_byte(t253);
    let t257 = from_byte(t254);
    let t258 = from_byte(t255);
    let t259 = (t256 * 0.003921569f) * (1.0f + (0.3f * p.param_value));
    let t260 = (t257 * 0.003921569f) * (1.0f - (0.3f * p.param_tint));
    let t261 = (t258 * 0.003921569f) * (1.0f - (0.3f * p.param_value));
    let t262 = ((t259 * 0.299f) + (t260 * 0.587f)) + (t261 * 0.114f);
    let t263 = ((t256 * 0.001172549f) + (t257 * 0.0023019607f)) + (t258 * 0.00044705882f);
    let t264 = select(1.0f, div_f32(t263, t262), (t262 > 0.0f));
    let t265 = from_byte(byte_f32((t259 * t264) * 255.0f)) * 0.003921569f;
    let t266 = from_byte(byte_f32((t260 * t264) * 255.0f)) * 0.003921569f;
    let t267 = from_byte(byte_f32((t261 * t264) * 255.0f)) * 0.003921569f;
    let t268 = 1.0f + p.param_value_2;
    let t269 = from_byte(byte_f32((((t265 - 0.5f) * t268) + 0.5f) * 255.0f));
    let t270 = from_byte(byte_f32((((t266 - 0.5f) * t268) + 0.5f) * 255.0f));
    let t271 = from_byte(byte_f32((((t267 - 0.5f) * t268) + 0.5f) * 255.0f));
    let t272 = div_f32(f32(x) + 0.5f, f32(p.out_dim_1)) - 0.5f;
    let t273 = div_f32(f32(y) + 0.5f, f32(p.out_dim_0)) - 0.5f;
    let t274 = p.param_radius_2 - p.param_softness;
    let t275 = div_f32((sqrt((t272 * t272) + (t273 * t273)) * 1.4142135f) - t274, (p.param_radius_2 + p.param_softness) - t274);
    let t276 = select(t275, 0.0f, t275 < hide_f32(0.0f));
    let t277 = select(t276, 1.0f, t276 > hide_f32(1.0f));
    let t278 = 1.0f - (p.param_amount * ((t277 * t277) * (3.0f - (2.0f * t277))));
    return vec4<i32>(byte_f32(((t269 * 0.003921569f) * t278) * 255.0f), byte_f32(((t270 * 0.003921569f) * t278) * 255.0f), byte_f32(((t271 * 0.003921569f) * t278) * 255.0f), t3.w);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let tile = group.y * groups.x + group.x;
    let column = (tile % p.tiles_across) * 32u + lane % 32u;
    let row = (tile / p.tiles_across) * 8u + lane / 32u;
    if (column >= p.width || row >= p.height) { return; }
    let e = row * p.width + column;
    let y = i32(row);
    let x = i32(column);
    output[e] = pack_u8(kernel(y, x));
}
