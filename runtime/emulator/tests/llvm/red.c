typedef unsigned int u32; typedef unsigned long u64;
#define K __attribute__((device_kernel))
extern int printf(const char*,...);
int vprintf(const char*, void*);
void __assertfail(const char*, const char*, unsigned, const char*, unsigned long);
extern __attribute__((address_space(3))) float smem[];
static const __attribute__((address_space(4))) float table[4]={1.f,2.5f,3.f,-1.f};
const char fmt[]="hello %d %f\n";
__attribute__((noinline)) static float helper(float a, int b, float *p){ float s=0; for(int i=0;i<b;i++){ s+= p[i]*a; if (s>100.f) break; } return s; }
K void red(__attribute__((address_space(1))) float* x, __attribute__((address_space(1))) float* y, int n){
  int tid=__nvvm_read_ptx_sreg_tid_x();
  float s=0; for(int i=tid;i<n;i+=128) s+=x[i];
  for(int o=16;o;o>>=1) s+=__nvvm_shfl_sync_bfly_f32(0xffffffff,s,o,31);
  if((tid&31)==0) smem[tid>>5]=s;
  __nvvm_bar_sync(0);
  if(tid==0){ y[0]=smem[0]+smem[1]+smem[2]+smem[3]; struct {int a; double b;} v={n,s}; vprintf(fmt,&v); if(n>1000) __assertfail("n<1000","f.c",12,"red",1);}
}
K void sw(__attribute__((address_space(1))) int* x,__attribute__((address_space(1))) float* y, float *g){
  int tid=__nvvm_read_ptx_sreg_tid_x();
  int v=x[tid]; float loc[8]; for(int i=0;i<8;i++) loc[(v+i*3)&7]=i*table[v&3];
  float r;
  switch(v){case 0:r=y[0];break;case 1:r=y[9]*3;break;case 2:r=loc[v+1];y[12]=1;break;case 3:r=__builtin_sqrtf(y[4]);break;case 4:r=y[7]/y[1];break;case 5: r=helper(y[0],v*2,loc);break;case 6:y[100]=2;r=1;break;default:r=0;}
  y[tid]=r+loc[v&7]+helper(r,v,g);
}
struct S{ long a; float b; short c;};
__attribute__((noinline)) static struct S mk(struct S s, int k){ s.a+=k; s.b*=2; s.c^=k; return s;}
K void st(__attribute__((address_space(1))) struct S* x, int k){ int t=__nvvm_read_ptx_sreg_tid_x(); x[t]=mk(x[t],k);}
K void fp(_Float16*a, __bf16*b, double *d, int *i, long *l, unsigned char*c, short*s){
 a[0]=a[1]*a[2]+a[3]; a[4]=(_Float16)d[0]; b[0]=b[1]+b[2]; i[0]=(int)d[1]; l[0]=(long)(float)a[7]; d[3]=l[3]; c[0]=c[1]+c[2]; s[0]=c[3]*s[3]; i[5]=i[6]/i[7]; l[5]=l[6]%l[7]; a[9]=(_Float16)i[8]; c[9]=(unsigned char)a[5]; i[10]=__builtin_clz(i[11]); i[12]=__builtin_popcount(i[13]);d[9]=__builtin_elementwise_fma(d[9],d[8],1.0); a[12]=a[13]<a[14]?a[12]:a[15]; b[12]=(__bf16)(float)i[19]; l[20]=l[21]>>(i[22]&63); i[23]=__builtin_bitreverse32(i[24]); i[25]=(unsigned)i[26]<<7|(unsigned)i[26]>>25; s[14]=s[15]<0?-s[15]:s[15]; }
