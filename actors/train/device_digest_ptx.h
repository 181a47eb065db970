// device_digest.cu as PTX, made by scripts/device_digest.py: not to be edited.
#pragma once

namespace troupe::train {

inline constexpr char kDeviceDigestPtx[] = R"ptx(.version 6.0
.target sm_60
.address_size 64
.visible .entry troupe_digest(
 .param .u64 troupe_digest_param_0,
 .param .u64 troupe_digest_param_1,
 .param .u64 troupe_digest_param_2
)
{
 .reg .pred  %p<6>;
 .reg .b32  %r<16>;
 .reg .b64  %rd<70>;
 ld.param.u64  %rd25, [troupe_digest_param_1];
 ld.param.u64  %rd28, [troupe_digest_param_0];
 cvta.to.global.u64  %rd1, %rd28;
 mov.u32  %r6, %ntid.x;
 shr.u64  %rd3, %rd25, 2;
 mov.u32  %r8, %ctaid.x;
 mul.wide.u32  %rd29, %r8, %r6;
 mov.u32  %r9, %tid.x;
 cvt.u64.u32  %rd30, %r9;
 add.s64  %rd67, %rd29, %rd30;
 setp.ge.u64  %p1, %rd67, %rd3;
 mov.u64  %rd66, 0;
 @%p1 bra  $L__BB0_3;
 mov.u32  %r7, %nctaid.x;
 mul.wide.u32  %rd2, %r7, %r6;
 shl.b64  %rd32, %rd67, 2;
 add.s64  %rd64, %rd1, %rd32;
 shl.b64  %rd6, %rd2, 2;
 mul.lo.s64  %rd33, %rd67, 7046029254386353131;
 mov.u64  %rd34, -7046029254386353131;
 sub.s64  %rd62, %rd34, %rd33;
 mul.lo.s64  %rd8, %rd2, 7046029254386353131;
 mov.u64  %rd66, 0;
$L__BB0_2:
 .pragma "nounroll";
 ld.global.s32  %rd35, [%rd64];
 add.s64  %rd36, %rd62, %rd35;
 shr.u64  %rd37, %rd36, 30;
 xor.b64   %rd38, %rd37, %rd36;
 mul.lo.s64  %rd39, %rd38, -4658895280553007687;
 shr.u64  %rd40, %rd39, 27;
 xor.b64   %rd41, %rd40, %rd39;
 mul.lo.s64  %rd42, %rd41, -7723592293110705685;
 shr.u64  %rd43, %rd42, 31;
 xor.b64   %rd44, %rd43, %rd42;
 add.s64  %rd66, %rd44, %rd66;
 add.s64  %rd64, %rd64, %rd6;
 add.s64  %rd67, %rd67, %rd2;
 sub.s64  %rd62, %rd62, %rd8;
 setp.lt.u64  %p2, %rd67, %rd3;
 @%p2 bra  $L__BB0_2;
$L__BB0_3:
 ld.param.u64  %rd60, [troupe_digest_param_2];
 setp.ne.s64  %p3, %rd67, %rd3;
 @%p3 bra  $L__BB0_8;
 and.b64   %rd19, %rd25, 3;
 setp.eq.s64  %p4, %rd19, 0;
 @%p4 bra  $L__BB0_8;
 shl.b64  %rd46, %rd3, 2;
 add.s64  %rd20, %rd1, %rd46;
 cvt.u32.u64  %r1, %rd19;
 mov.u64  %rd68, 0;
 mov.b32  %r14, 0;
 mov.u32  %r15, %r14;
$L__BB0_6:
 .pragma "nounroll";
 add.s64  %rd47, %rd20, %rd68;
 ld.global.u8  %r11, [%rd47];
 shl.b32  %r12, %r11, %r14;
 or.b32   %r15, %r12, %r15;
 add.s64  %rd68, %rd68, 1;
 add.s32  %r14, %r14, 8;
 cvt.u32.u64  %r13, %rd68;
 setp.lt.u32  %p5, %r13, %r1;
 @%p5 bra  $L__BB0_6;
 cvt.s64.s32  %rd48, %r15;
 mul.lo.s64  %rd49, %rd3, -7046029254386353131;
 add.s64  %rd50, %rd49, %rd48;
 add.s64  %rd51, %rd50, -7046029254386353131;
 shr.u64  %rd52, %rd51, 30;
 xor.b64   %rd53, %rd52, %rd51;
 mul.lo.s64  %rd54, %rd53, -4658895280553007687;
 shr.u64  %rd55, %rd54, 27;
 xor.b64   %rd56, %rd55, %rd54;
 mul.lo.s64  %rd57, %rd56, -7723592293110705685;
 shr.u64  %rd58, %rd57, 31;
 xor.b64   %rd59, %rd58, %rd57;
 add.s64  %rd66, %rd59, %rd66;
$L__BB0_8:
 red.global.add.u64 [%rd60], %rd66;
 ret;
}
)ptx";

}  // namespace troupe::train
