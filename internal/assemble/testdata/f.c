struct page; extern void *memcpy(void*,const void*,unsigned long); extern int table[];
extern void slow(long); static int count; 
long f(long *p, int n, const char *s){ long t=0; for(int i=0;i<n;i++){ if(p[i]>s[i]) t+=p[i]*3; else t-=(unsigned char)s[i]>>2; __sync_fetch_and_add(&count,1);} if(t<0) slow(t); switch(n){case 0:return 5;case 1:return table[n];case 2: return t/7;} memcpy(p,s,n*4); return t<<n; }
